-- +goose Up

CREATE TABLE batches (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ulid             uuid        NOT NULL,
    company_id       bigint      NOT NULL,
    user_id          bigint      NOT NULL,
    kind             text        NOT NULL CHECK (kind IN ('bulk', 'template')),
    sender           text        NOT NULL,
    recipients_count integer     NOT NULL,
    item_count       integer     NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX batches_ulid ON batches (ulid);
CREATE INDEX batches_company ON batches (company_id, id);

-- One row a message. The status path (status, sent_at, failed_at,
-- failure_reason, carrier) is in no index and the page keeps room for a second
-- version of every row, so that settling is a HOT update, also of all messages
-- of a page in one transaction.
CREATE TABLE messages (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- message_id of the webhooks
    ulid           uuid        NOT NULL,
    company_id     bigint      NOT NULL, -- 0: the gateway's own (one-time passwords)
    user_id        bigint      NOT NULL,
    batch_id       bigint,               -- NULL: a single send
    phone_number   text        NOT NULL, -- E.164
    sender         text        NOT NULL,
    body           text        NOT NULL,
    encoding       smallint    NOT NULL, -- 0 GSM-7, 1 UCS-2
    segments       smallint    NOT NULL,
    concat_ref     smallint,             -- 8-bit reference of a concatenated message
    test           boolean     NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    carrier        text        NOT NULL, -- as routed; the one that took it once it is carried
    status         smallint    NOT NULL DEFAULT 0, -- 0 pending, 1 sent, 2 failed
    sent_at        timestamptz,
    failed_at      timestamptz,
    failure_reason text
) WITH (fillfactor = 45);
CREATE UNIQUE INDEX messages_ulid ON messages (ulid);
CREATE INDEX messages_company ON messages (company_id, id);
CREATE INDEX messages_batch ON messages (batch_id) WHERE batch_id IS NOT NULL;

-- What still has to reach a carrier: written with the message, deleted in the
-- transaction that records the last segment's carrier id. Small whatever the
-- history is; the Redis streams can be rebuilt from it at any moment.
CREATE TABLE outbox (
    message_id bigint PRIMARY KEY,
    company_id bigint      NOT NULL,
    carrier    text        NOT NULL,
    lane       smallint    NOT NULL, -- 0 single, 1 batch
    attempts   integer     NOT NULL DEFAULT 0,
    due_at     timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    pushed_at  timestamptz DEFAULT now(), -- when it was put on the queue; NULL: it is not there
    claimed_by bigint                     -- dispatchers.id of who is carrying it
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000);

-- What is asked of one carrier's lane costs nothing for what waits in the others.
CREATE INDEX outbox_lane ON outbox (carrier, lane, message_id);

-- What comes due again (a retry, what somebody gave back or handed over) is found
-- by its time. A new row is on the queue already and not in here, and neither
-- claiming nor carrying it touches these columns.
CREATE INDEX outbox_unpushed ON outbox (due_at) WHERE pushed_at IS NULL;

-- One row a segment that a carrier accepted. A segment sent twice (after an
-- answer was lost) has two rows, each with its own carrier id.
CREATE TABLE segments (
    message_id   bigint      NOT NULL,
    segment      smallint    NOT NULL, -- from 1
    total        smallint    NOT NULL,
    handset      integer,              -- last eight digits of the message's number: receipts are matched by it without a look at the message
    carrier      text        NOT NULL,
    link         text        NOT NULL,
    key          text        NOT NULL, -- carrier id as matched: lower case, no leading zeros
    carrier_id   text,                 -- as the carrier wrote it, where that differs
    submitted_at timestamptz NOT NULL,
    state        smallint,             -- 1 sent, 2 failed: the first final state
    receipt      text,                 -- the carrier's word (DELIVRD, ...)
    error        text,
    receipt_at   timestamptz
) WITH (fillfactor = 45);
CREATE INDEX segments_key ON segments (key, carrier);
CREATE INDEX segments_message ON segments (message_id);

-- Receipts that settled no segment. Without a message they are the inbox: the
-- segment's own response may still be on its way. With one they are kept for
-- whoever asks what the carrier said.
CREATE TABLE receipts (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    received_at timestamptz NOT NULL DEFAULT now(),
    handset     integer,              -- last eight digits of number; NULL: it is none
    carrier     text        NOT NULL,
    link        text        NOT NULL,
    key         text        NOT NULL,
    carrier_id  text        NOT NULL,
    number      text        NOT NULL, -- the handset it speaks of, as the carrier wrote it
    state       text        NOT NULL,
    status      smallint,             -- what the state means: 1 sent, 2 failed, NULL nothing yet
    error       text        NOT NULL,
    message_id  bigint,
    outcome     text        NOT NULL CHECK (outcome IN ('unmatched', 'duplicate', 'contradiction', 'intermediate'))
);
CREATE UNIQUE INDEX receipts_inbox ON receipts (key, carrier, state) WHERE message_id IS NULL;
CREATE INDEX receipts_message ON receipts (message_id) WHERE message_id IS NOT NULL;

-- Last concatenation reference of a (sender, recipient) pair: a handset puts
-- segments together by them, so two long messages must not share one soon.
CREATE TABLE concat_refs (
    sender       text     NOT NULL,
    phone_number text     NOT NULL,
    last         smallint NOT NULL,
    used_at      timestamptz NOT NULL DEFAULT now(), -- created_at of the message that has it
    PRIMARY KEY (sender, phone_number)
) WITH (fillfactor = 60);

-- How far each sweep over messages has come.
CREATE TABLE sweeps (
    name  text   PRIMARY KEY,
    up_to bigint NOT NULL
);
