-- +goose Up

-- What stood before a rotation, sealed as the secret is: both sign until then.
ALTER TABLE webhook_endpoints
    ADD COLUMN previous_secret text,
    ADD COLUMN previous_until  timestamptz,
    ADD COLUMN failing_since   timestamptz, -- the first failure since the last success; NULL: the last call succeeded
    ADD COLUMN given_up_at     timestamptz, -- the first delivery given up since the last success
    ADD COLUMN told_at         timestamptz, -- when its owner was last told of that
    ADD COLUMN disabled_at     timestamptz, -- switched off by the gateway; NULL: by nobody, or by its owner
    ADD COLUMN disabled_reason text CHECK (disabled_reason IN ('failing', 'gone'));

-- A company's wish to have everything sent again that was given up since a
-- time, and how far it has come. What fails again lies behind up_to.
CREATE TABLE webhook_recoveries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    company_id  bigint      NOT NULL,
    since       timestamptz NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    up_to       bigint      NOT NULL DEFAULT 0, -- webhook_deliveries.id
    found       bigint      NOT NULL DEFAULT 0, -- when it began
    resent      bigint      NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX webhook_recoveries_open ON webhook_recoveries (company_id) WHERE finished_at IS NULL;
CREATE INDEX webhook_recoveries_company ON webhook_recoveries (company_id, id);
