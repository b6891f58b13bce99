CREATE TABLE batches (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ulid             uuid        NOT NULL,
    company_id       bigint      NOT NULL,
    user_id          bigint      NOT NULL,
    kind             text        NOT NULL CHECK (kind IN ('bulk', 'template')),
    sender           text        NOT NULL,
    recipients_count integer     NOT NULL,
    item_count       integer     NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    send_at          timestamptz, -- as in messages
    expire_at        timestamptz,
    name             text        NOT NULL DEFAULT '', -- the customer's own name of a campaign; '': none, as for batches of the API
    awaited          integer     NOT NULL DEFAULT 0,  -- recipients of a campaign that are still to be added. 0: none, or the batch was cancelled
    left_out         jsonb                            -- recipients of a campaign that its later parts left out, by the reason of the refusal; NULL: none
);
CREATE UNIQUE INDEX batches_ulid ON batches (ulid);
CREATE INDEX batches_company ON batches (company_id, id);
CREATE INDEX batches_awaited ON batches (company_id) WHERE awaited > 0;

-- One row per message. No index has the columns that settling writes (carrier, status, sent_at, failed_at,
-- failure_reason), and each page has room for a second version of every row: settling is a HOT update.
CREATE TABLE messages (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- message_id of the webhooks
    ulid             uuid        NOT NULL,
    company_id       bigint      NOT NULL, -- 0: the gateway's own (one-time codes)
    user_id          bigint      NOT NULL,
    batch_id         bigint,               -- NULL: a single send
    phone_number     text        NOT NULL, -- E.164
    sender           text        NOT NULL,
    body             text        NOT NULL,
    encoding         smallint    NOT NULL, -- 0 GSM-7, 1 UCS-2
    segments         smallint    NOT NULL,
    concat_ref       smallint,             -- 8-bit concatenation reference of a long message
    test             boolean     NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    carrier          text        NOT NULL, -- as routed; after submission the carrier that took it
    status           smallint    NOT NULL DEFAULT 0, -- 0 pending, 1 sent, 2 failed
    sent_at          timestamptz,
    failed_at        timestamptz,
    failure_reason   text,
    client_reference text COLLATE "C",        -- the customer's own name
    send_at          timestamptz, -- not before, by the customer or quiet hours. NULL: at once
    expire_at        timestamptz  -- given up then. NULL: as configured
) WITH (fillfactor = 45);
CREATE UNIQUE INDEX messages_ulid ON messages (ulid);
CREATE INDEX messages_company ON messages (company_id, id);
CREATE INDEX messages_batch ON messages (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX messages_client_reference ON messages (company_id, client_reference, id) WHERE client_reference IS NOT NULL;

-- Messages that must still reach a carrier. A row is written with its message and deleted in the transaction that
-- records the last segment's carrier id, so the table stays small. Redis is refilled from it.
CREATE TABLE outbox (
    message_id bigint PRIMARY KEY,
    company_id bigint      NOT NULL,
    due_at     timestamptz NOT NULL DEFAULT now(), -- 9999-12-31: suspended (suspensions)
    expires_at timestamptz NOT NULL,
    pushed_at  timestamptz DEFAULT now(), -- when it was put on the queue; NULL: it is not on it
    lane       smallint    NOT NULL, -- 0 single, 1 batch
    carrier    text COLLATE "C"        NOT NULL,
    -- A claim changes the next columns. WAL gets what is between the first and the last that changed.
    attempts   integer     NOT NULL DEFAULT 0,
    claimed_by bigint,                    -- dispatchers.id; NULL: not claimed
    epoch      integer     NOT NULL DEFAULT 0,     -- counts the claims, from a random number in a row that returned: a result under an earlier claim changes nothing
    begun      boolean     NOT NULL DEFAULT false, -- the current claimant may have submitted it
    original_carrier       text COLLATE "C",                               -- the first carrier, if this is the second one
    since      timestamptz -- when its time came, if later than its acceptance: it has waited since then
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000);

-- Reads one lane of a carrier at no cost for the messages of others.
CREATE INDEX outbox_lane ON outbox (carrier, lane, message_id);
-- Rows to be put on the queue (retries, released or handed over rows), by their time.
CREATE INDEX outbox_unpushed ON outbox (due_at) WHERE pushed_at IS NULL;
-- Messages at a second carrier, and suspended messages. Neither claiming nor submitting a message writes these columns.
CREATE INDEX outbox_original_carrier ON outbox (original_carrier, message_id) WHERE original_carrier IS NOT NULL;
CREATE INDEX outbox_held ON outbox (company_id, message_id) WHERE due_at = '9999-12-31T00:00:00Z'::timestamptz;

-- Messages of the outbox per lane, as last counted by the walk.
CREATE TABLE backlogs (
    carrier   text COLLATE "C"     NOT NULL,
    lane      smallint NOT NULL,
    messages  bigint   NOT NULL,
    oldest_at timestamptz, -- when the oldest message was accepted
    due_at    timestamptz, -- the earliest due_at
    PRIMARY KEY (carrier, lane)
) WITH (fillfactor = 50);

-- Messages for later: the values of their future outbox rows. A message is in one of the two tables.
CREATE TABLE scheduled (
    message_id bigint      PRIMARY KEY,
    company_id bigint      NOT NULL,
    carrier    text COLLATE "C"        NOT NULL,
    lane       smallint    NOT NULL,
    due_at     timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000);
CREATE INDEX scheduled_due ON scheduled (lane, due_at, message_id);

-- Messages with send_at or expire_at. The sweep over overdue messages skips them; each is checked at look_at.
CREATE TABLE deadlines (
    message_id bigint      PRIMARY KEY,
    expires_at timestamptz NOT NULL, -- as in outbox
    look_at    timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000);
CREATE INDEX deadlines_look ON deadlines (look_at);

-- Messages for which a second carrier was chosen before they failed: once each.
CREATE TABLE carrier_moves (
    message_id   bigint      PRIMARY KEY,
    at           timestamptz NOT NULL,
    from_carrier text        NOT NULL,
    to_carrier   text        NOT NULL,
    reason       text        NOT NULL -- why it would have failed
);

-- Senders with suspended messages (outbox.due_at): the claiming statement writes the row when the company or sender is not
-- approved. Once both are, the messages become due and the row is deleted.
CREATE TABLE suspensions (
    company_id bigint NOT NULL,
    sender     text COLLATE "C"   NOT NULL, -- senders.name
    PRIMARY KEY (company_id, sender)
);

-- The last concatenation reference per (sender, number). A handset joins segments by it: two long messages within a
-- short time must differ.
CREATE TABLE concat_refs (
    sender       text COLLATE "C"        NOT NULL,
    phone_number text COLLATE "C"        NOT NULL,
    last         smallint    NOT NULL,
    used_at      timestamptz NOT NULL DEFAULT now(), -- created_at of its message
    PRIMARY KEY (sender, phone_number)
) WITH (fillfactor = 60);

-- Sandbox messages: their result and its time. They are in no outbox and reach no carrier. A row stays for a day after
-- acceptance: the quota of a user's messages per day counts these rows.
CREATE TABLE sandbox (
    message_id bigint      PRIMARY KEY,
    user_id    bigint      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    due_at     timestamptz NOT NULL,
    status     smallint    NOT NULL, -- 1 sent, 2 failed
    reason     text        NOT NULL, -- of the failure
    settled    boolean     NOT NULL DEFAULT false
);
CREATE INDEX sandbox_user ON sandbox (user_id, created_at);
CREATE INDEX sandbox_due ON sandbox (due_at) WHERE NOT settled;
CREATE INDEX sandbox_created ON sandbox (created_at);

-- Positions of the sweeps over messages.
CREATE TABLE sweeps (
    name  text COLLATE "C"   PRIMARY KEY,
    up_to bigint NOT NULL -- messages.id
);

-- Ranges of ids counted in tallies and carrier_segments: a range is counted again until all its messages are final.
CREATE TABLE tally_chunks (
    chunk      bigint      PRIMARY KEY, -- messages with id / 10000 = chunk (tallyChunk)
    up_to      bigint      NOT NULL DEFAULT 0, -- the last message that was counted
    pending    bigint      NOT NULL DEFAULT 0,
    changed_at timestamptz NOT NULL DEFAULT now(), -- when a count last found a new message
    counted_at timestamptz NOT NULL DEFAULT '-infinity',
    closed     boolean     NOT NULL DEFAULT false -- final: it is not counted again
);
CREATE INDEX tally_chunks_open ON tally_chunks (chunk) WHERE NOT closed;

-- Messages by company, day and how they went. While a range of ids is open, it has rows of its own; the rows of closed
-- ranges, and of purged messages, are added up in the rows with chunk -1, which are kept for ever.
-- Texts are compared by their bytes, which is several times faster.
CREATE TABLE tallies (
    company_id  bigint   NOT NULL, -- 0: all companies together, without sender and cost_center
    day         date     NOT NULL, -- in Burundi
    chunk       bigint   NOT NULL, -- tally_chunks.chunk; -1: of all closed chunks and all purged messages
    carrier     text     COLLATE "C" NOT NULL,
    sender      text     COLLATE "C" NOT NULL,
    kind        smallint NOT NULL, -- 0 single, 1 batch, 2 test
    channel     smallint NOT NULL, -- as in messages; 0: the API
    cost_center text     COLLATE "C" NOT NULL, -- '': none
    status      smallint NOT NULL, -- 0 pending, 1 sent, 2 failed, 3 pending and at a carrier
    reason      text     COLLATE "C" NOT NULL, -- why they failed; '': they did not
    messages    bigint   NOT NULL,
    segments    bigint   NOT NULL,
    to_carrier  bigint[], -- messages by the time until a carrier had them (timeBounds); NULL: no carrier has had any
    to_receipt  bigint[], -- messages by the time from then to their receipt; NULL: there is no receipt
    PRIMARY KEY (company_id, day, chunk, carrier, sender, kind, channel, cost_center, status, reason)
);
CREATE INDEX tallies_chunk ON tallies (chunk) WHERE chunk >= 0;
CREATE INDEX tallies_day ON tallies (day);

-- Segments that carriers have, or may have, by the day when they got them: each copy counts where it went. Its chunks are
-- those of tallies.
CREATE TABLE carrier_segments (
    day        date    NOT NULL, -- in Burundi
    carrier    text    COLLATE "C" NOT NULL,
    link       text    COLLATE "C" NOT NULL, -- '': not known
    company_id bigint  NOT NULL, -- 0: the gateway's own messages
    test       boolean NOT NULL,
    chunk      bigint  NOT NULL,
    accepted   bigint  NOT NULL, -- answered by the carrier, or proved by a receipt
    unanswered bigint  NOT NULL, -- the carrier may have them
    PRIMARY KEY (day, carrier, link, company_id, test, chunk)
);
CREATE INDEX carrier_segments_chunk ON carrier_segments (chunk) WHERE chunk >= 0;

-- A Bloom filter of phone numbers per 10,000 ids, written once, when no further message can have such an id. An index
-- on messages.phone_number would cost each message more WAL than its row.
CREATE TABLE number_filters (
    chunk bigint PRIMARY KEY, -- messages with id / 10000 = chunk (filterChunk)
    bits  bytea  NOT NULL     -- empty: there is no such message
);
ALTER TABLE number_filters ALTER COLUMN bits SET STORAGE EXTERNAL; -- uncompressed: a look-up reads a few bytes

-- Sums of purged messages, by which the audit proves them against the ledger, which is never purged.
CREATE TABLE purged (
    company_id bigint  PRIMARY KEY,
    requests   bigint  NOT NULL, -- charged requests: single messages and batches
    messages   bigint  NOT NULL, -- of these requests
    segments   bigint  NOT NULL, -- credits
    mark       numeric NOT NULL  -- sum of the requests' purge_mark
);

-- A hash of a purged request and its price. The sum over the ledger's rows without messages equals purged.mark only if
-- they are the same requests at the same price.
CREATE FUNCTION purge_mark(ref uuid, segments bigint) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ('x' || left(encode(sha256(convert_to(ref || ' ' || segments, 'UTF8')), 'hex'), 15))::bit(60)::bigint::numeric
$$;

-- Messages that a purge skipped because they, or their batch, were not final. A later purge deletes them.
CREATE TABLE unpurged (
    kind       text COLLATE "C"   NOT NULL CHECK (kind IN ('messages', 'bodies', 'numbers', 'company bodies')),
    message_id bigint NOT NULL,
    PRIMARY KEY (kind, message_id)
);

-- Companies whose texts have, or had, a retention of their own. The purge walks over their messages separately, from
-- the first one after each change.
CREATE TABLE body_rules (
    company_id   bigint      PRIMARY KEY,
    keep_seconds bigint      CHECK (keep_seconds >= 0), -- NULL: as configured; 0: until the message is final
    changed_at   timestamptz NOT NULL DEFAULT now(),
    up_to        bigint      NOT NULL DEFAULT 0 -- the last message that the walk has passed
);
