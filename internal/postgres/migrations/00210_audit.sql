-- The audit log: every administrative change, in its transaction. Insert only. No secrets.
CREATE TABLE audit_log (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    actor      text        NOT NULL CHECK (actor <> ''),   -- user@host of a command, "user <id>" of a page
    act        text        NOT NULL CHECK (act <> ''),     -- company.set, token.revoke, …
    subject    text        NOT NULL CHECK (subject <> ''), -- "company 12", "link lumitel-1"
    company_id bigint,                                     -- if it concerns one company
    before     jsonb,                                      -- NULL: it did not exist
    after      jsonb                                       -- NULL: it was removed
);
CREATE INDEX audit_log_at ON audit_log (at);
CREATE INDEX audit_log_company ON audit_log (company_id, id) WHERE company_id IS NOT NULL;

CREATE TRIGGER audit_log_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION insert_only();
