-- +goose Up

-- One row a company: the hot row of every send. Kept apart from the company
-- itself so that a debit rewrites 16 octets and no index (HOT update).
CREATE TABLE balances (
    company_id bigint PRIMARY KEY,
    credits    bigint NOT NULL DEFAULT 0 CHECK (credits >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Every change of a balance. balances.credits = sum(ledger.amount) at all times.
CREATE TABLE ledger (
    id            bigint GENERATED ALWAYS AS IDENTITY,
    company_id    bigint      NOT NULL,
    kind          text        NOT NULL CHECK (kind IN ('adjustment', 'send', 'refund')),
    amount        bigint      NOT NULL CHECK (amount <> 0),
    balance_after bigint      NOT NULL CHECK (balance_after >= 0),
    ref           uuid,       -- ULID: of the single message or the batch (send), of the message (refund)
    note          text        NOT NULL DEFAULT '',
    created_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (company_id, id)
);
COMMENT ON TABLE ledger IS 'Insert only. One row an API request, an adjustment or a refund.';

-- One refund a message, whatever is retried. That a request is charged once is
-- seen to by its message's or batch's ULID, which is written with the debit and
-- unique there.
CREATE UNIQUE INDEX ledger_refund ON ledger (ref) WHERE kind = 'refund';

-- +goose StatementBegin
CREATE FUNCTION ledger_is_insert_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is insert only: correct it with a new row';
END
$$;
-- +goose StatementEnd
CREATE TRIGGER ledger_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_insert_only();

-- Segments of test messages that are sent or still pending, by account
-- (rule api 4.4.5): a failed one gives its segments back.
CREATE TABLE test_pools (
    user_id bigint PRIMARY KEY,
    used    bigint NOT NULL DEFAULT 0 CHECK (used >= 0)
);
