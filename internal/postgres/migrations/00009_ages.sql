-- +goose Up

-- What is forgotten after a time is found by its age, at the price of what is
-- forgotten, not of what is kept.
CREATE INDEX receipts_age ON receipts (received_at) WHERE message_id IS NULL;
CREATE INDEX inbound_age ON inbound (received_at);
