-- +goose Up

-- Every delivery has a row in webhook_undelivered until it succeeds. Any process
-- claims rows that are due and calls their endpoints; what it records names the claim.
DROP TABLE webhook_owner;

ALTER TABLE webhook_undelivered ADD COLUMN claimed_until timestamptz; -- NULL: not claimed

-- No index has the column, and pages keep room: a claim is a heap-only update.
ALTER TABLE webhook_undelivered SET (fillfactor = 50);

COMMENT ON COLUMN webhook_undelivered.due IS
    'when the next attempt is due; infinity: given up';

-- +goose Down
