-- +goose Up

-- Mails to companies' owners that must not be lost with a process: what one is
-- about, until a mail server has taken it. What became of a wish is read when
-- its mail goes out, so that it says what holds then.
CREATE TABLE letters (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text        NOT NULL CHECK (kind IN ('approval', 'verification', 'sender', 'balance', 'webhook')),
    company_id bigint      NOT NULL,
    subject    bigint      NOT NULL DEFAULT 0, -- senders.id; 0: the company itself
    said       jsonb,                          -- what it says, where that changes with time
    written_at timestamptz NOT NULL DEFAULT now(),
    due_at     timestamptz NOT NULL DEFAULT now(),
    tries      integer     NOT NULL DEFAULT 0,
    UNIQUE (company_id, kind, subject)
);

-- What is news takes the place of what was to be said before.
CREATE FUNCTION letter(kind text, company bigint, subject bigint, said jsonb) RETURNS void LANGUAGE sql AS $$
    INSERT INTO letters (kind, company_id, subject, said) VALUES (kind, company, subject, said)
    ON CONFLICT (company_id, kind, subject) DO UPDATE
    SET said = excluded.said, written_at = clock_timestamp(), due_at = excluded.due_at, tries = 0
$$;

-- As with the notices: whoever decides, a page, a command or somebody in psql, in
-- the transaction of the decision.

-- +goose StatementBegin
CREATE FUNCTION company_letter() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.approved IS DISTINCT FROM NEW.approved THEN
        PERFORM letter('approval', NEW.id, 0, NULL);
    END IF;
    IF OLD.verified IS DISTINCT FROM NEW.verified THEN
        PERFORM letter('verification', NEW.id, 0, NULL);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION sender_letter() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM letter('sender', NEW.company_id, NEW.id, NULL);
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER companies_letter AFTER UPDATE OF approved, verified ON companies
    FOR EACH ROW EXECUTE FUNCTION company_letter();
CREATE TRIGGER senders_letter AFTER UPDATE OF approved, refused_at ON senders
    FOR EACH ROW WHEN (NEW.approved AND NOT OLD.approved
        OR NOT NEW.approved AND NEW.refused_at IS NOT NULL AND NEW.refused_at IS DISTINCT FROM OLD.refused_at)
    EXECUTE FUNCTION sender_letter();
