-- +goose Up

-- Companies that lost their approval while they may have messages queued. The
-- relay puts these off to the end of time (outbox.due_at); once the company is
-- approved again they are due. Whoever takes the approval away, a page, a command
-- or somebody in psql, holds: the trigger is in the transaction of the change.
CREATE TABLE holds (
    company_id bigint PRIMARY KEY,
    since      timestamptz NOT NULL DEFAULT now(),
    released   boolean     NOT NULL DEFAULT false -- approved again: what is held goes on
);

-- +goose StatementBegin
CREATE FUNCTION hold_company() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.approved THEN
        UPDATE holds SET released = true WHERE company_id = NEW.id;
    ELSE
        INSERT INTO holds (company_id) VALUES (NEW.id)
        ON CONFLICT (company_id) DO UPDATE SET since = now(), released = false;
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER companies_hold AFTER UPDATE OF approved ON companies
    FOR EACH ROW WHEN (OLD.approved IS DISTINCT FROM NEW.approved) EXECUTE FUNCTION hold_company();
