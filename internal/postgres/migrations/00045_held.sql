-- +goose Up

-- What is known of a message that left the outbox because its carrier may have
-- it (on_ambiguous: hold): should the carrier refuse it after all, it goes back
-- with the time that it had, and its claims are counted on. Rows go some time
-- after the message's.
CREATE TABLE held (
    message_id bigint      PRIMARY KEY,
    epoch       integer     NOT NULL, -- of its last claim
    expires_at timestamptz NOT NULL
);
