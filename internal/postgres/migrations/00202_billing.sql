-- One row per company, which every send locks and writes. It is not in companies, so a debit rewrites a short row and
-- no index (HOT update).
CREATE TABLE balances (
    company_id bigint PRIMARY KEY,
    credits    bigint NOT NULL DEFAULT 0 CHECK (credits >= 0),
    spent_on   date,                                        -- the day of spent, in Burundi; NULL: never
    spent      bigint NOT NULL DEFAULT 0 CHECK (spent >= 0), -- credits of that day's sends
    -- Segments of test messages that are sent or pending; a failed one returns its segments. (rule api 4.4.5)
    test_used  bigint NOT NULL DEFAULT 0 CHECK (test_used >= 0)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Every change of a balance: one row per API request, adjustment or refund. Insert only. balances.credits is always the
-- sum of ledger.amount.
CREATE TABLE ledger (
    id            bigint GENERATED ALWAYS AS IDENTITY,
    company_id    bigint      NOT NULL,
    amount        bigint      NOT NULL CHECK (amount <> 0),
    balance_after bigint      NOT NULL CHECK (balance_after >= 0),
    created_at    timestamptz NOT NULL DEFAULT now(),
    ref           uuid,       -- send: ULID of the single message or the batch; refund: of the message; adjustment: key of its form
    kind          text        NOT NULL CHECK (kind IN ('adjustment', 'send', 'refund')), -- texts last: no gaps for alignment
    note          text        NOT NULL DEFAULT '',
    PRIMARY KEY (company_id, id)
);

-- A message is refunded once, and a form that is sent twice adds credits once. A request is charged once because its
-- ULID is unique in messages or batches.
CREATE UNIQUE INDEX ledger_once ON ledger (ref) WHERE kind <> 'send';

CREATE TRIGGER ledger_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger
    FOR EACH STATEMENT EXECUTE FUNCTION insert_only();

-- Refunds of failed messages whose balance another transaction had locked: settling continues, and the row is paid
-- soon.
CREATE TABLE returns (
    ref        uuid    PRIMARY KEY, -- ULID of the message
    company_id bigint  NOT NULL,
    segments   bigint  NOT NULL CHECK (segments > 0),
    test       boolean NOT NULL     -- of the test pool; else credits
) WITH (fillfactor = 70);

-- Thresholds below which a company's owner gets a mail (once an hour at most) and a webhook event (each crossing).
CREATE TABLE balance_warnings (
    company_id bigint NOT NULL,
    threshold  bigint NOT NULL CHECK (threshold > 0),
    told_at    timestamptz,                    -- of the last mail
    low        boolean NOT NULL DEFAULT false, -- the balance was below it at the last check
    PRIMARY KEY (company_id, threshold)
);
