-- +goose Up

-- A carrier may have a message although nothing is recorded of it.
ALTER TABLE outbox ADD COLUMN in_doubt boolean NOT NULL DEFAULT false; -- a process died after its claim was begun
COMMENT ON COLUMN outbox.begun IS 'the present claimant may have submitted it';
