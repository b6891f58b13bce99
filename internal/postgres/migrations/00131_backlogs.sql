-- +goose Up

-- What waits for each carrier's lane, as the walk over the outbox last counted it:
-- whoever shows it reads this, and not all that waits.
CREATE TABLE backlogs (
    carrier   text     NOT NULL,
    lane      smallint NOT NULL,
    messages  bigint   NOT NULL,
    oldest_at timestamptz, -- when the longest waiting was accepted
    due_at    timestamptz, -- since when the one is due that is due longest
    PRIMARY KEY (carrier, lane)
) WITH (fillfactor = 50);

-- What a stand-in was given, and what is held, is found at the price of what it is.
-- No other row is in these, and neither claiming nor carrying one touches their columns.
CREATE INDEX outbox_home ON outbox (home, message_id) WHERE home IS NOT NULL;
CREATE INDEX outbox_held ON outbox (company_id, message_id) WHERE due_at = '9999-12-31T00:00:00Z'::timestamptz;
