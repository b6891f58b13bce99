-- An API key of kind SMPP: a customer's program binds with its system_id and password, and it works nowhere else. Its
-- secret_hash is an HMAC-SHA256 of both: at most 8 characters need a key.
ALTER TABLE api_tokens
    DROP CONSTRAINT api_tokens_scopes_check,
    ADD COLUMN system_id text COLLATE "C" UNIQUE CHECK (length(system_id) BETWEEN 1 AND 15), -- NULL: a key of the HTTP API
    ADD COLUMN sessions  smallint CHECK (sessions BETWEEN 1 AND 100),            -- binds at a time
    ADD COLUMN "window"  smallint CHECK ("window" BETWEEN 1 AND 100),            -- unanswered submit_sm of a bind
    ADD COLUMN tps       integer  CHECK (tps BETWEEN 1 AND 10000),               -- segments a second, all binds together
    ADD COLUMN alphabet  text     CHECK (alphabet IN ('gsm7', 'latin1')),        -- that its programs mean by data_coding 0
    ADD CONSTRAINT api_tokens_kind CHECK (CASE WHEN system_id IS NULL THEN scopes <@ '{send,read}' AND cardinality(scopes) > 0
        ELSE scopes = '{smpp}' AND (sessions, "window", tps) IS NOT NULL END);
DROP TRIGGER api_tokens_notice ON api_tokens;
CREATE TRIGGER api_tokens_notice
    AFTER INSERT OR UPDATE OF user_id, secret_hash, revoked_at, networks, sessions, "window", tps, alphabet OR DELETE ON api_tokens
    FOR EACH ROW EXECUTE FUNCTION notice('account', 'user_id');

-- Of a message that was submitted over SMPP. The columns are NULL for all others.
ALTER TABLE messages
    ADD COLUMN smpp_key  bigint,   -- api_tokens.id of the key
    ADD COLUMN smpp_bind     bigint,   -- smpp_binds.id of the bind
    ADD COLUMN registered    smallint, -- receipts that it asked for: 1 success and failure, 2 failure, 3 success. NULL: none
    ADD COLUMN urgent        boolean,  -- its priority_flag is not 0: it goes with the single sends
    ADD COLUMN echo          bytea,    -- optional parameters that its receipt repeats, as on the wire. NULL: none
    ADD COLUMN message_class smallint, -- 0 to 3 (3GPP TS 23.038, section 4). NULL: none
    ADD COLUMN part          bigint;   -- of a part of a long message: reference * 65536 + total * 256 + number, above them its
                                       -- coding (bit 32) and whether the reference has 16 bits (bit 40). NULL: whole

-- Customers' binds, one row for each. The process that serves a bind renews seen_at; a bind that it has not renewed for
-- longer is over.
CREATE TABLE smpp_binds (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account    bigint      NOT NULL REFERENCES api_tokens,
    process    text        NOT NULL,
    peer       text        NOT NULL, -- address and port
    mode       text        NOT NULL CHECK (mode IN ('transceiver', 'transmitter', 'receiver')),
    bound_at   timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    submitted  bigint      NOT NULL DEFAULT 0,    -- accepted submit_sm
    refused    jsonb       NOT NULL DEFAULT '{}', -- refused ones, by status
    in_flight  integer     NOT NULL DEFAULT 0,    -- unanswered submit_sm
    unanswered integer     NOT NULL DEFAULT 0,    -- unanswered deliver_sm
    unbind     boolean     NOT NULL DEFAULT false -- its process is to end it
) WITH (fillfactor = 50);
CREATE INDEX smpp_binds_account ON smpp_binds (account);
CREATE TRIGGER smpp_binds_notice AFTER UPDATE OF unbind ON smpp_binds
    FOR EACH ROW EXECUTE FUNCTION notice('smpp', 'account');

-- Receipts and MOs that customers' binds are to get. A row is deleted when the customer has answered deliver_sm, or when it
-- is too old.
CREATE TABLE smpp_deliveries (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account      bigint      NOT NULL,
    bind         bigint,               -- the one that submitted the message, which gets its receipt if it still is; NULL: an MO
    due_at       timestamptz NOT NULL DEFAULT now(),
    taken_by     text,                 -- the process that delivers it; NULL: none
    tries        smallint    NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT now(),
    phone_number text COLLATE "C"        NOT NULL, -- the handset: E.164 if it is national
    address      text        NOT NULL, -- the sender of the message; the address that an MO went to
    ulid         uuid,                 -- of the message; NULL: an MO
    message_id   bigint,               -- of the message; NULL: an MO
    echo         bytea,                -- messages.echo
    sent         boolean,              -- whether it was delivered; NULL: an MO
    reason       text,                 -- why it failed
    submitted_at timestamptz,          -- when it was accepted from the customer
    at           timestamptz NOT NULL, -- of the final state; when an MO arrived
    body         text                  -- of an MO
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX smpp_deliveries_due ON smpp_deliveries (account, due_at, id);
CREATE INDEX smpp_deliveries_number ON smpp_deliveries (phone_number); -- to export or erase a number
CREATE INDEX smpp_deliveries_age ON smpp_deliveries (created_at);

-- MOs of a route go to binds of a key too.
ALTER TABLE inbound_routes ADD COLUMN smpp_key bigint REFERENCES api_tokens;
