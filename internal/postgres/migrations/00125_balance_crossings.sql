-- +goose Up

-- Several thresholds a company, and whether the balance is known to be below each:
-- every crossing is told of by webhook, and by mail once an hour at most.
ALTER TABLE balance_warnings
    DROP CONSTRAINT balance_warnings_pkey,
    ADD PRIMARY KEY (company_id, threshold),
    ADD COLUMN low     boolean NOT NULL DEFAULT false, -- when it was last looked at
    ADD COLUMN credits bigint;                         -- at the last crossing
UPDATE balance_warnings SET low = told_at IS NOT NULL;

-- The mail is written with the crossing, whoever notes it.
-- +goose StatementBegin
CREATE FUNCTION balance_letter() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM letter('balance', NEW.company_id, 0, jsonb_build_object('credits', NEW.credits, 'threshold', NEW.threshold));
    PERFORM pg_notify('intumwa', 'company ' || NEW.company_id); -- wakes who sends letters
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER balance_warnings_letter AFTER UPDATE OF told_at ON balance_warnings
    FOR EACH ROW WHEN (NEW.told_at > coalesce(OLD.told_at, '-infinity'))
    EXECUTE FUNCTION balance_letter();
