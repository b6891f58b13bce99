-- +goose Up

-- Files of recipients that were checked and wait for the user's confirmation.
CREATE TABLE campaign_drafts (
    ulid       uuid        PRIMARY KEY,
    company_id bigint      NOT NULL,
    sender     text        NOT NULL,
    template   text        NOT NULL,
    recipients jsonb       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX campaign_drafts_company ON campaign_drafts (company_id, created_at);
CREATE INDEX campaign_drafts_created ON campaign_drafts (created_at);

-- Mails to companies' owners, until a mail server has taken them. A row has the subject only: a decision is read when
-- its mail is sent, so that the mail states what holds then.
CREATE TABLE letters (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text        NOT NULL CHECK (kind IN ('approval', 'verification', 'sender', 'balance', 'webhook')),
    company_id bigint      NOT NULL,
    subject    bigint      NOT NULL DEFAULT 0, -- senders.id; 0: the company itself
    said       jsonb,                          -- values that change with time, such as the balance
    written_at timestamptz NOT NULL DEFAULT now(),
    due_at     timestamptz NOT NULL DEFAULT now(),
    tries      integer     NOT NULL DEFAULT 0,
    UNIQUE (company_id, kind, subject)
);

-- Writes a letter. A new one replaces an older one about the same subject.
CREATE FUNCTION letter(kind text, company bigint, subject bigint, said jsonb) RETURNS void LANGUAGE sql AS $$
    INSERT INTO letters (kind, company_id, subject, said) VALUES (kind, company, subject, said)
    ON CONFLICT (company_id, kind, subject) DO UPDATE
    SET said = excluded.said, written_at = clock_timestamp(), due_at = excluded.due_at, tries = 0
$$;

-- A letter is part of the transaction of its decision or crossing, whether a page, a command or psql makes it.
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

CREATE FUNCTION balance_letter() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM letter('balance', NEW.company_id, 0, jsonb_build_object('credits', NEW.credits, 'threshold', NEW.threshold));
    PERFORM pg_notify('intumwa', 'company ' || NEW.company_id); -- wakes the process that sends letters
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
CREATE TRIGGER balance_warnings_letter AFTER UPDATE OF told_at ON balance_warnings
    FOR EACH ROW WHEN (NEW.told_at > coalesce(OLD.told_at, '-infinity'))
    EXECUTE FUNCTION balance_letter();
