-- +goose Up

-- The audit log: every administrative change, in the transaction of the change. Insert only. No secrets.
CREATE TABLE acts (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    actor      text        NOT NULL CHECK (actor <> ''),   -- user@host of a command, "user <id>" of a page
    act        text        NOT NULL CHECK (act <> ''),     -- company.set, token.revoke, …
    subject    text        NOT NULL CHECK (subject <> ''), -- "company 12", "link lumitel-1"
    company_id bigint,                                     -- if it concerns one company
    before     jsonb,                                      -- NULL: there was nothing
    after      jsonb                                       -- NULL: it was removed
);
CREATE INDEX acts_at ON acts (at);
CREATE INDEX acts_company ON acts (company_id, id) WHERE company_id IS NOT NULL;

-- +goose StatementBegin
CREATE FUNCTION acts_are_insert_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what was done is insert only';
END
$$;
-- +goose StatementEnd
CREATE TRIGGER acts_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON acts
    FOR EACH STATEMENT EXECUTE FUNCTION acts_are_insert_only();
