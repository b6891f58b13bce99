-- +goose Up

-- user_message_reference, where a carrier echoes it: by it a receipt finds a
-- segment whose submit_sm_resp never came, also when the receipt was first.
ALTER TABLE receipts ADD COLUMN reference integer;
CREATE INDEX receipts_reference ON receipts (reference, carrier) WHERE message_id IS NULL AND reference IS NOT NULL;
