-- +goose Up

-- How long texts of a company's messages are kept, where it is not (or was once not)
-- what the configuration says. The purge walks over such a company's messages apart
-- from all others, from the first after each change.
CREATE TABLE body_rules (
    company_id   bigint      PRIMARY KEY,
    keep_seconds bigint      CHECK (keep_seconds >= 0), -- NULL: as the configuration says; 0: until the message is final
    changed_at   timestamptz NOT NULL DEFAULT now(),
    up_to        bigint      NOT NULL DEFAULT 0         -- the last message that the walk has passed
);

ALTER TABLE unpurged
    DROP CONSTRAINT unpurged_kind_check,
    ADD CHECK (kind IN ('messages', 'bodies', 'numbers', 'company bodies'));
