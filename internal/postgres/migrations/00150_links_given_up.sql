-- +goose Up

-- Which links a dispatcher is configured with, and which of them it leaves to another:
-- it gave them up lately, because it could not bind them.
ALTER TABLE dispatchers
    ADD COLUMN links text[] NOT NULL DEFAULT '{}', -- of a release before: nothing is known
    ADD COLUMN rests text[] NOT NULL DEFAULT '{}';

-- Of a link that was given up: where the attempts of its binds (failures, retry_in) had come
-- to, so that whoever takes it goes on from there. Empty while somebody has it.
ALTER TABLE links
    ADD COLUMN bound_by bigint,            -- dispatchers.id: who last had it bound
    ADD COLUMN failures integer[]          NOT NULL DEFAULT '{}', -- in a row
    ADD COLUMN retry_in double precision[] NOT NULL DEFAULT '{}'; -- seconds until the next attempt
