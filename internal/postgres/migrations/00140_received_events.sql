-- +goose Up

-- The events about what a person's handset sent are found by its number, when the
-- message they tell of is not kept any more. Other events are in no such index: they
-- cost a message nothing.
CREATE INDEX webhook_deliveries_received ON webhook_deliveries (phone_number) WHERE data IS NOT NULL;
