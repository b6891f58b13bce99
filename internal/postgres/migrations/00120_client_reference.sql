-- +goose Up

-- A name of the customer's own for a message. Most have none: a NULL takes no room
-- in a row, and such a row is not in the index.
ALTER TABLE messages ADD COLUMN client_reference text;
CREATE INDEX messages_client_reference ON messages (company_id, client_reference, id) WHERE client_reference IS NOT NULL;
ALTER TABLE webhook_deliveries ADD COLUMN client_reference text; -- of its message, for the body
