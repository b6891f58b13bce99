-- +goose Up

-- user_message_reference, where a carrier echoes it: by it a receipt finds a
-- segment whose submit_sm_resp never came, also when the receipt was first.
ALTER TABLE receipts ADD COLUMN reference integer;
CREATE INDEX receipts_reference ON receipts (reference, carrier) WHERE message_id IS NULL AND reference IS NOT NULL;

-- Two SMSCs of a carrier may give the same ids, and one id's digits can be
-- another's in hexadecimal: only the handset and the id as it was written tell
-- a receipt that came again from another's.
DROP INDEX receipts_inbox;
CREATE UNIQUE INDEX receipts_inbox ON receipts (key, carrier, state, number, carrier_id) WHERE message_id IS NULL;
