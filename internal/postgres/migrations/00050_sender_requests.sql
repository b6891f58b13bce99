-- +goose Up

-- What a company wants a sender for, and what became of its wish. A sender waits
-- while it is neither approved nor refused; one that is approved counts as that
-- whatever else stands here.
ALTER TABLE senders
    ADD COLUMN purpose    text NOT NULL DEFAULT '' CHECK (char_length(purpose) <= 500), -- '': registered by a command
    ADD COLUMN asked_at   timestamptz NOT NULL DEFAULT now(), -- the last time
    ADD COLUMN refused_at timestamptz,
    ADD COLUMN refusal    text NOT NULL DEFAULT '' CHECK (char_length(refusal) <= 500); -- why, for the company

CREATE INDEX senders_waiting ON senders (id) WHERE NOT approved AND refused_at IS NULL;
