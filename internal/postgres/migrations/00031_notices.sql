-- +goose Up

-- Every process keeps some rows in memory for a moment. Whoever changes one of
-- them, a page, a command or somebody in psql, tells all: in the transaction of
-- the change, so that nobody hears of what was rolled back and nobody reads
-- before it can be seen. The arguments are the subject and the key's column.

-- +goose StatementBegin
CREATE FUNCTION notice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM pg_notify('intumwa', TG_ARGV[0] || ' ' || left(to_jsonb(OLD) ->> TG_ARGV[1], 1000));
    END IF;
    IF TG_OP <> 'DELETE' THEN -- the same text twice in a transaction is told once
        PERFORM pg_notify('intumwa', TG_ARGV[0] || ' ' || left(to_jsonb(NEW) ->> TG_ARGV[1], 1000));
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- A token that somebody tried before it was made is remembered as unknown. The
-- last use is written every minute and is no news.
CREATE TRIGGER api_tokens_notice AFTER INSERT OR UPDATE OF user_id, secret_hash, revoked_at OR DELETE ON api_tokens
    FOR EACH ROW EXECUTE FUNCTION notice('account', 'user_id');
CREATE TRIGGER companies_notice AFTER INSERT OR UPDATE OR DELETE ON companies
    FOR EACH ROW EXECUTE FUNCTION notice('account', 'owner_id');
CREATE TRIGGER senders_notice AFTER INSERT OR UPDATE OR DELETE ON senders
    FOR EACH ROW EXECUTE FUNCTION notice('company', 'company_id');
CREATE TRIGGER test_numbers_notice AFTER INSERT OR UPDATE OR DELETE ON test_numbers
    FOR EACH ROW EXECUTE FUNCTION notice('account', 'user_id');

CREATE TRIGGER webhook_endpoints_notice AFTER INSERT OR UPDATE OF url, secret, active, previous_secret OR DELETE ON webhook_endpoints
    FOR EACH ROW EXECUTE FUNCTION notice('endpoint', 'company_id');

-- Its other columns are written every second.
CREATE TRIGGER links_notice AFTER UPDATE OF paused ON links
    FOR EACH ROW WHEN (OLD.paused IS DISTINCT FROM NEW.paused) EXECUTE FUNCTION notice('link', 'name');
