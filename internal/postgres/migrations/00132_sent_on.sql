-- +goose Up

-- Messages for which a second carrier was asked before they failed: once each. Where
-- there is none (to_carrier), none is to be asked.
CREATE TABLE sent_on (
    message_id   bigint      PRIMARY KEY,
    at           timestamptz NOT NULL,
    from_carrier text        NOT NULL,
    to_carrier   text,
    reason       text        NOT NULL -- why it would have failed
);

-- Copies from before say nothing of the message any more.
ALTER TABLE segments ADD COLUMN passed boolean; -- NULL: it was not sent on since
