-- +goose Up

-- What is forgotten after a time is found by its age, at the price of what is
-- forgotten, not of what is kept.
CREATE INDEX receipts_age ON receipts (received_at);
CREATE INDEX inbound_age ON inbound (received_at);

ALTER TABLE outbox
    ADD COLUMN epoch  integer NOT NULL DEFAULT 0,     -- counts the claims: what is said of an earlier one changes nothing
    ADD COLUMN begun boolean NOT NULL DEFAULT false, -- a carrier may have it although nothing is written of it
    ADD COLUMN home  text;                           -- the carrier that it was handed over from
