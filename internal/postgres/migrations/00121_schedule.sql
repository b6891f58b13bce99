-- +goose Up

-- When a message is to be sent, and when it is to be given up, where its customer
-- (or quiet hours) said so. NULL takes no room in a row.
ALTER TABLE messages
    ADD COLUMN send_at   timestamptz,
    ADD COLUMN expire_at timestamptz;
ALTER TABLE batches
    ADD COLUMN send_at   timestamptz,
    ADD COLUMN expire_at timestamptz;

-- What has been accepted for later: what its row in outbox will be made of. Until
-- due_at it stands in no other list, and costs nothing but its room. What is due is
-- found by lane, single sends first, then by time.
CREATE TABLE scheduled (
    message_id bigint      PRIMARY KEY,
    company_id bigint      NOT NULL,
    carrier    text        NOT NULL,
    lane       smallint    NOT NULL,
    due_at     timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000);
CREATE INDEX scheduled_due ON scheduled (lane, due_at, message_id);

-- When the time of a row of outbox came, or comes, where that is later than its
-- acceptance: how long it has waited counts from there.
ALTER TABLE outbox ADD COLUMN since timestamptz;

-- Messages whose time is not that of all others (send_at, expire_at): the sweep over
-- all messages passes them by, and whoever decides the overdue looks at each of them
-- again at look_at.
CREATE TABLE deadlines (
    message_id bigint      PRIMARY KEY,
    expires_at timestamptz NOT NULL, -- as in its row of outbox
    look_at    timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000);
CREATE INDEX deadlines_look ON deadlines (look_at);
