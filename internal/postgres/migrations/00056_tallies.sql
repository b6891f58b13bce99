-- +goose Up

-- Messages by day, counted by ranges of ids (chunks): one is counted again until
-- all its messages are final.
CREATE TABLE tally_chunks (
    chunk      bigint      PRIMARY KEY, -- messages with id / 100000 of this
    up_to      bigint      NOT NULL DEFAULT 0, -- the last message that was counted
    pending    bigint      NOT NULL DEFAULT 0,
    changed_at timestamptz NOT NULL DEFAULT now(), -- when a count last found a new message
    counted_at timestamptz NOT NULL DEFAULT '-infinity',
    closed     boolean     NOT NULL DEFAULT false  -- nothing in it will change any more
);
CREATE INDEX tally_chunks_open ON tally_chunks (chunk) WHERE NOT closed;

CREATE TABLE tallies (
    company_id bigint NOT NULL,
    day        date   NOT NULL, -- in Burundi
    chunk      bigint NOT NULL,
    carrier    text   NOT NULL,
    pending    bigint NOT NULL,
    sent       bigint NOT NULL,
    failed     bigint NOT NULL,
    PRIMARY KEY (company_id, day, chunk, carrier)
);
CREATE INDEX tallies_chunk ON tallies (chunk);
