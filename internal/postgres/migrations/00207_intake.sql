-- The response to the first request with an Idempotency-Key, written in the transaction that charges it: a crash cannot
-- charge twice.
CREATE TABLE idempotency_keys (
    user_id    bigint      NOT NULL,
    key        text COLLATE "C"        NOT NULL,
    request    bytea       NOT NULL, -- SHA-256 of the endpoint and the bytes of the body
    answer     bytea,                -- body of the first answer
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
