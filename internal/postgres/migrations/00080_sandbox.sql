-- +goose Up

-- Messages of the sandbox: what becomes of each, and when. They are in no outbox
-- and never reach a carrier. A row stays for a day after its message was accepted,
-- as a user may have so many a day.
CREATE TABLE sandbox (
    message_id bigint      PRIMARY KEY,
    user_id    bigint      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    due_at     timestamptz NOT NULL,
    status     smallint    NOT NULL, -- 1 sent, 2 failed
    reason     text        NOT NULL, -- why it fails
    settled    boolean     NOT NULL DEFAULT false
);
CREATE INDEX sandbox_user ON sandbox (user_id, created_at);
CREATE INDEX sandbox_due ON sandbox (due_at) WHERE NOT settled;
CREATE INDEX sandbox_created ON sandbox (created_at);
