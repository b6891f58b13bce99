-- +goose Up

-- What a failed message has to give back while somebody else holds the balance
-- or the test pool: settling goes on, and the row is paid as soon as it can be.
CREATE TABLE returns (
    ref        uuid PRIMARY KEY, -- ULID of the message
    company_id bigint,           -- whose balance gets it
    user_id    bigint,           -- whose test pool gets it
    segments   bigint      NOT NULL CHECK (segments > 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (num_nonnulls(company_id, user_id) = 1)
) WITH (fillfactor = 70);
