-- +goose Up

-- Whose owner wants a mail when the balance falls below so many credits.
CREATE TABLE balance_warnings (
    company_id bigint PRIMARY KEY,
    threshold  bigint NOT NULL CHECK (threshold > 0),
    told_at    timestamptz -- of this crossing; NULL: the balance was not below it when last looked at
);
