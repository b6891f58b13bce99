-- +goose Up

-- What is kept of a handset's number is found by it: to show and to erase it all, and in
-- a company's list of one number. Short codes, where nearly all is sent to, and events
-- that tell of a company's own messages are in none of these: they cost those nothing.
CREATE INDEX inbound_messages_source ON inbound_messages (source, company_id, received_at, id);
CREATE INDEX inbound_messages_destination ON inbound_messages (destination) WHERE length(destination) >= 8;
CREATE INDEX inbound_destination ON inbound (destination) WHERE length(destination) >= 8;
CREATE INDEX webhook_deliveries_received ON webhook_deliveries (phone_number) WHERE data IS NOT NULL;
