-- +goose Up

-- One row a thing that one dispatcher does for all: 'tasks', and 'link ' with the name of each
-- link. It ends with its holder's row. The holder's id is its epoch: a process that was taken for
-- dead gets a new id, and what it writes under the old one changes nothing.
CREATE TABLE leases (
    name   text   PRIMARY KEY,
    holder bigint NOT NULL REFERENCES dispatchers ON DELETE CASCADE
);

ALTER TABLE links
    DROP COLUMN owner, DROP COLUMN failures, DROP COLUMN retry_in,
    ADD COLUMN retries json NOT NULL DEFAULT '[]'; -- of a link that was given up: where its binds' attempts had come to (smpp.Retry)
ALTER TABLE dispatchers DROP COLUMN session, DROP COLUMN session_at;
