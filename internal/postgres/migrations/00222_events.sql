-- Companies whose programs fetch events (GET /v1/events): from its first request on, a company's events are recorded.
CREATE TABLE event_readers (
    company_id bigint      PRIMARY KEY,
    since      timestamptz,                    -- its events are recorded; NULL: it has not asked, or not for too long
    events     text[]      NOT NULL DEFAULT '{}' -- subscribed besides those that every company fetches
        CHECK (events <@ ARRAY['batch.finished', 'verification.finished']),
    ready      boolean     NOT NULL DEFAULT false, -- no transaction runs that began before since and did not record its events
    -- Earlier events are made of the messages, in the order of messages.id: those up to history exist, up to history_to are to.
    history    bigint      NOT NULL DEFAULT 0,
    history_to bigint      NOT NULL DEFAULT 0,
    last       bigint      NOT NULL DEFAULT 0, -- the highest position so far. It never falls
    home       text        NOT NULL DEFAULT '', -- the server, database and table that gave it
    timeline   text        NOT NULL DEFAULT '', -- and the server's timeline
    purged     bigint      NOT NULL DEFAULT 0, -- the highest position of a deleted event
    pulled_at  timestamptz NOT NULL DEFAULT now() -- within five minutes
) WITH (fillfactor = 50);

-- The events of these companies: the values of their bodies, as in webhook_deliveries. A request that finds events without
-- a position gives them one, under the lock of the company's row above and after they are committed.
CREATE TABLE events (
    company_id       bigint      NOT NULL,
    id               bigint      NOT NULL,
    at               timestamptz NOT NULL,
    -- Its place among the company's events. Negative: none yet; minus the microseconds since 1970 when it was recorded.
    position         bigint      NOT NULL,
    phone_number     text COLLATE "C"        NOT NULL,
    labels text,
    data             text,
    PRIMARY KEY (company_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
CREATE INDEX events_position ON events (company_id, position);
CREATE INDEX events_received ON events (phone_number) WHERE data IS NOT NULL; -- to export or erase a number

-- Companies that ask for batch.finished, and their batches that have no such event yet.
CREATE TABLE batch_askers (
    company_id bigint PRIMARY KEY,
    up_to      bigint NOT NULL -- batches.id: up to here all that count are, or were, in batch_watches
) WITH (fillfactor = 50);
CREATE TABLE batch_watches (
    batch_id   bigint      PRIMARY KEY,
    company_id bigint      NOT NULL,
    pending    bigint,                         -- the last message that was pending at the last look
    told       boolean     NOT NULL DEFAULT false, -- it has its event. The row goes when its company's up_to has passed it
    created_at timestamptz NOT NULL            -- of the batch
) WITH (fillfactor = 50);
