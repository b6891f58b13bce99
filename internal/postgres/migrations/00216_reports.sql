-- Of a message, for reports. Both columns are NULL for a message of the API without a cost centre.
ALTER TABLE messages
    ADD COLUMN channel     smallint, -- how it came: NULL the API, 1 a page, 2 SMPP, 3 Kannel's interface
    ADD COLUMN cost_center text COLLATE "C" CHECK (char_length(cost_center) BETWEEN 1 AND 64); -- the customer's own label
CREATE INDEX messages_cost_center ON messages (company_id, cost_center, id) WHERE cost_center IS NOT NULL;
