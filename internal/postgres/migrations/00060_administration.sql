-- +goose Up

-- A page for adding credits has a key of its own: what is sent twice is done
-- once.
CREATE TABLE grants (
    key        uuid        PRIMARY KEY,
    company_id bigint      NOT NULL,
    at         timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE grants IS 'Keys of grants of credits that were done.';

-- What tells operators whether a link is well, beside what it has.
ALTER TABLE links
    ADD COLUMN accepted  integer NOT NULL DEFAULT 0,  -- submit_sm that the carrier took in the last minute
    ADD COLUMN throttled integer NOT NULL DEFAULT 0,  -- and refused because they came too fast
    ADD COLUMN overdue   integer NOT NULL DEFAULT 0;  -- in flight for longer than the response timeout
