-- +goose Up

-- Which chunks of messages may hold one to a number: a Bloom filter for every
-- 10,000 ids, written once, when no message of them can come any more. An index
-- on messages.phone_number would cost every message more of the write-ahead log
-- than its row does.
CREATE TABLE number_filters (
    chunk bigint PRIMARY KEY, -- messages with id / 10000 of this
    bits  bytea  NOT NULL     -- empty: there is no such message
);
ALTER TABLE number_filters ALTER COLUMN bits SET STORAGE EXTERNAL; -- a few octets of each are read, wherever they lie
