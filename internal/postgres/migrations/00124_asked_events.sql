-- +goose Up

-- sms.sent and sms.failed go to every endpoint; these only to one that asked.
ALTER TABLE webhook_endpoints
    ADD COLUMN events text[] NOT NULL DEFAULT '{}' CHECK (events <@ ARRAY['sms.received', 'balance.low']);

-- The body of such an event cannot be made of the other columns. NULL costs a row
-- nothing.
ALTER TABLE webhook_deliveries ADD COLUMN data text;

COMMENT ON COLUMN webhook_deliveries.id IS
    'number * 8 + event (0 sms.sent, 1 sms.failed, 2 sms.received, 3 balance.low); the numbers are those of messages, and drawn from their sequence for the other events';
COMMENT ON COLUMN webhook_deliveries.data IS
    'the member data of the body, octet for octet, of events from 2 on';
