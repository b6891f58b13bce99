-- +goose Up

-- One endpoint a company (rule api 6). No foreign key to companies: the room
-- that calls in knows that the company exists.
CREATE TABLE webhook_endpoints (
    company_id bigint      PRIMARY KEY,
    url        text        NOT NULL,
    secret     text        NOT NULL,
    active     boolean     NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

COMMENT ON COLUMN webhook_endpoints.secret IS
    'whsec_… in plain when no encryption key is configured; else aes256gcm: and the base64 of nonce, ciphertext and tag (AES-256-GCM, additional data: company_id as 8 bytes, big endian)';

-- A row a final message of a company that had an active endpoint.
--
-- The primary key is the promise of one event per message and name: it is
-- computed, not drawn, so that no second unique index has to be kept. A claim
-- writes leased_until only, which no index knows (heap-only update); half of
-- every page is left free for it and for the result.
CREATE TABLE webhook_deliveries (
    id           bigint      PRIMARY KEY,
    company_id   bigint      NOT NULL,
    next_at      timestamptz NOT NULL DEFAULT now(),
    leased_until timestamptz NOT NULL DEFAULT '-infinity',
    created_at   timestamptz NOT NULL DEFAULT now(),
    finished_at  timestamptz,
    state        smallint    NOT NULL DEFAULT 0,
    tries        smallint    NOT NULL DEFAULT 0,
    body         text        NOT NULL,
    attempts     jsonb       NOT NULL DEFAULT '[]'
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05
);

COMMENT ON COLUMN webhook_deliveries.id IS
    'message_id * 8 + event (0 sms.sent, 1 sms.failed)';
COMMENT ON COLUMN webhook_deliveries.next_at IS
    'when the next attempt is due; meaningful while pending';
COMMENT ON COLUMN webhook_deliveries.leased_until IS
    'until then a worker has it in hand; past it the delivery may be taken again';
COMMENT ON COLUMN webhook_deliveries.state IS
    '0 pending, 1 delivered, 2 exhausted (permanently failed)';
COMMENT ON COLUMN webhook_deliveries.tries IS
    'attempts finished in this round; a re-send by hand opens a new round';
COMMENT ON COLUMN webhook_deliveries.body IS
    'the exact bytes of every attempt';
COMMENT ON COLUMN webhook_deliveries.attempts IS
    'every attempt, oldest first: at, status, result, ms, error, excerpt';

-- Finds due work company by company; led by the company so that nobody reads
-- through another's backlog.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (company_id, next_at) WHERE state = 0;

-- Lists what was given up, for people. Touched only by deliveries that fail for good.
CREATE INDEX webhook_deliveries_exhausted ON webhook_deliveries (company_id, id) WHERE state = 2;
