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
    'whsec_… in plain when no encryption key is configured; else aes256gcm: and the base64 of nonce, ciphertext and tag (AES-256-GCM, additional data: company and company_id as 8 bytes, big endian)';

-- A row a final message of a company that had an active endpoint: what the body
-- is made of, written once and never again. The primary key is the promise of
-- one event per message and name, and lists a company's deliveries. seq is the
-- order of arrival, by which whoever delivers reads what is new, and what is
-- old leaves.
CREATE TABLE webhook_deliveries (
    seq          bigint GENERATED ALWAYS AS IDENTITY,
    company_id   bigint      NOT NULL,
    id           bigint      NOT NULL,
    at           timestamptz NOT NULL,
    phone_number text        NOT NULL,
    PRIMARY KEY (company_id, id)
);
CREATE UNIQUE INDEX webhook_deliveries_seq ON webhook_deliveries (seq);

COMMENT ON COLUMN webhook_deliveries.id IS
    'message_id * 8 + event (0 sms.sent, 1 sms.failed)';
COMMENT ON COLUMN webhook_deliveries.at IS
    'when the message became final: the timestamp of the body';

-- Every call, written once.
CREATE TABLE webhook_attempts (
    seq     bigint      NOT NULL, -- webhook_deliveries.seq
    at      timestamptz NOT NULL, -- when it began
    ms      integer     NOT NULL, -- how long it took
    status  smallint    NOT NULL, -- of the answer; 0: none came
    result  text        NOT NULL, -- 2xx 3xx 4xx 5xx timeout dns tls blocked refused other
    error   text,                 -- why no answer came
    excerpt text                  -- beginning of a failure's answer
);
CREATE INDEX webhook_attempts_seq ON webhook_attempts (seq);

-- What was not delivered at the first attempt, or was sent again: what waits
-- until it is due, and what was given up (due: infinity). Gone on success. A
-- delivery without a row here has been delivered, or has just arrived.
CREATE TABLE webhook_undelivered (
    company_id  bigint      NOT NULL,
    id          bigint      NOT NULL, -- webhook_deliveries.id
    due         timestamptz NOT NULL,
    tries       smallint    NOT NULL DEFAULT 0, -- attempts of this round; a re-send by hand opens a new one
    given_up_at timestamptz,
    PRIMARY KEY (company_id, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05
);
-- Finds what is due company by company, so that nobody reads through another's
-- backlog, and lists what a company's endpoint had given up.
CREATE INDEX webhook_undelivered_due ON webhook_undelivered (company_id, due, id);

-- The one process that delivers: it holds the advisory lock. Whoever takes over
-- raises the epoch; what is recorded under an earlier one is not.
CREATE TABLE webhook_owner (
    one   boolean     PRIMARY KEY DEFAULT true CHECK (one),
    epoch bigint      NOT NULL,
    read  bigint      NOT NULL, -- all up to this webhook_deliveries.seq were attempted, or stand in webhook_undelivered
    beat  timestamptz NOT NULL  -- when the owner was last heard of
);
INSERT INTO webhook_owner (epoch, read, beat) VALUES (0, 0, now());
