-- The one endpoint of a company. (rule api 6)
CREATE TABLE webhook_endpoints (
    company_id      bigint      PRIMARY KEY, -- negative: no endpoint, but all callbacks of that company's messages (webhook_callbacks)
    url             text        NOT NULL,
    -- whsec_… in plain if no encryption key is configured; else aes256gcm: and the base64 of nonce, ciphertext and tag
    -- (AES-256-GCM, additional data: company and company_id as 8 bytes, big endian).
    secret          text        NOT NULL,
    previous_secret text,        -- the secret before a rotation, in the same form: both sign until previous_until
    previous_until  timestamptz,
    events          text[]      NOT NULL DEFAULT '{}' -- subscribed besides sms.sent and sms.failed, which every endpoint gets
        CHECK (events <@ ARRAY['sms.received', 'balance.low', 'batch.finished', 'verification.finished']),
    active          boolean     NOT NULL DEFAULT true,
    failing_since   timestamptz, -- the first failure since the last success; NULL: the last call succeeded
    given_up_at     timestamptz, -- the first delivery that was given up since the last success
    told_at         timestamptz, -- when the owner last got a mail about it
    updated_at      timestamptz NOT NULL DEFAULT now()
);

CREATE TRIGGER webhook_endpoints_notice
    AFTER INSERT OR UPDATE OF url, secret, active, previous_secret OR DELETE ON webhook_endpoints
    FOR EACH ROW EXECUTE FUNCTION notice('endpoint', 'company_id');

-- One row per event of a company that had an active endpoint: the values of its body, and the attempts to deliver it.
-- It is in webhook_undelivered until it is delivered, then in webhook_delivered. During a first call that began at the
-- COMMIT of the event, it is in an array of webhook_first_calls instead.
CREATE TABLE webhook_deliveries (
    company_id       bigint      NOT NULL,
    -- number * 8 + event (0 sms.sent, 1 sms.failed, 2 sms.received, 3 balance.low; of callbacks 4 submitted, 5 final; 6 batch.finished,
    -- 7 verification.finished). The number is messages.id or inbound_messages.id; for the last two and balance.low it is drawn from
    -- messages_id_seq.
    id               bigint      NOT NULL,
    at               timestamptz NOT NULL, -- timestamp of the body: when the message became final
    due              timestamptz,          -- of the next attempt; infinity: given up; NULL: delivered
    claimed_until    timestamptz,          -- NULL: not claimed
    given_up_at      timestamptz,
    tries            smallint    NOT NULL DEFAULT 0, -- attempts of this round; a re-send by hand begins a new round
    delivered        boolean     NOT NULL DEFAULT true,
    phone_number     text COLLATE "C"        NOT NULL,
    labels           text,                 -- further members of data, byte for byte: client_reference and cost_center of the message
    data             text,                 -- member data of the body, byte for byte, of events from 2 on
    callback         text,                 -- of a callback: the report, a space and the URL. NULL: the endpoint gets the event
    -- Every call of the endpoint, oldest first: at, ms, status (none: no response), result (2xx 3xx 4xx 5xx timeout dns
    -- tls blocked refused other), error (why there was no response), excerpt (beginning of a failure's response). NULL:
    -- none.
    attempts         json
) PARTITION BY LIST (delivered);
-- To export or erase a number. Events about a company's own messages have no data.
CREATE INDEX webhook_deliveries_received ON webhook_deliveries (phone_number) WHERE data IS NOT NULL;

CREATE TABLE webhook_delivered PARTITION OF webhook_deliveries (PRIMARY KEY (company_id, id)) FOR VALUES IN (true);

-- Any process claims due rows and calls their endpoints; a result is recorded only under its claim. No index has
-- claimed_until, and pages have room, so that a claim is a HOT update.
CREATE TABLE webhook_undelivered PARTITION OF webhook_deliveries (delivered DEFAULT false, PRIMARY KEY (company_id, id)) FOR VALUES IN (false)
WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05
);
-- By company, so that no company's due rows are behind another's backlog.
CREATE INDEX webhook_undelivered_due ON webhook_undelivered (company_id, due, id);
-- Given-up deliveries are deleted in this order. A delivery that succeeds is never in it.
CREATE INDEX webhook_undelivered_given_up ON webhook_undelivered (at) WHERE due = 'infinity';

-- One row per transaction whose process calls endpoints itself after the COMMIT: the values of these deliveries. They
-- get rows of their own when this one is deleted: by the process that calls, with the results, so most are written
-- once; or by another one after ends, if that process died.
CREATE TABLE webhook_first_calls (
    id                uuid          PRIMARY KEY, -- a ULID: no other row has it, even after a failover that lost this one
    ends              timestamptz   NOT NULL,
    company_ids       bigint[]      NOT NULL, -- these arrays have one element per delivery
    ids               bigint[]      NOT NULL,
    at                timestamptz[] NOT NULL,
    phone_numbers     text[]        NOT NULL,
    labels            text[]        NOT NULL,
    data              text[]        NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- The deliveries in webhook_first_calls, with the columns of webhook_deliveries.
CREATE VIEW webhook_called AS
    SELECT d.*, false AS delivered, d.at AS due, NULL::timestamptz AS given_up_at, NULL::json AS attempts, NULL::text AS callback
    FROM webhook_first_calls c, unnest(c.company_ids, c.ids, c.at, c.phone_numbers, c.labels, c.data)
        AS d(company_id, id, at, phone_number, labels, data);

-- Messages whose sender wants reports by GET of a URL: dlr-url of the Kannel interface. A row is written with its message
-- and deleted when the message is final.
CREATE TABLE webhook_callbacks (
    message_id   bigint   PRIMARY KEY,
    company_id   bigint   NOT NULL,
    phone_number text     NOT NULL, -- E.164, to erase the number
    mask         smallint NOT NULL, -- reports still wanted: 1 delivered, 2 failed, 8 accepted by a carrier, 16 accepted by none
    url          text     NOT NULL  -- with escapes for what the report adds
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
