-- +goose Up

-- What a company may send at most, where it is not what the configuration says:
-- NULL is the configuration's, 0 no limit.
ALTER TABLE companies
    ADD COLUMN credits_a_day  bigint  CHECK (credits_a_day >= 0),
    ADD COLUMN repeat_seconds integer CHECK (repeat_seconds BETWEEN 0 AND 86400), -- between two sends of a text to a number
    ADD COLUMN repeats_a_day  integer CHECK (repeats_a_day >= 0),                 -- of a text to a number
    ADD COLUMN number_a_day   integer CHECK (number_a_day >= 0);                  -- messages to a number

-- What its sends took on one day, in the row that each of them locks and writes
-- anyway: a limit is exact however many send at once, and one that is set in the
-- middle of a day knows what was spent before.
ALTER TABLE balances
    ADD COLUMN spent_on date,                        -- in Burundi; NULL: nothing was ever spent
    ADD COLUMN spent    bigint NOT NULL DEFAULT 0 CHECK (spent >= 0);
