-- MOs as carriers delivered them. After the commit the switchboard joins parts, drops repetitions and routes the rest.
CREATE TABLE inbound (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    received_at    timestamptz NOT NULL DEFAULT now(),
    carrier        text        NOT NULL,
    link           text        NOT NULL,
    source         text COLLATE "C"        NOT NULL,
    destination    text COLLATE "C"        NOT NULL,
    data_coding    smallint    NOT NULL,
    esm_class      smallint    NOT NULL,
    body           text,                 -- NULL: no text in a supported coding
    octets         bytea       NOT NULL, -- as received, header included
    part_reference integer,              -- of a part of a long message; NULL: a whole message
    part_total     smallint,
    part_number    smallint,             -- from 1
    outcome        text -- NULL: new
        CHECK (outcome IN ('routed', 'unrouted', 'waiting', 'incomplete', 'duplicate', 'too_long')),
    message_id     bigint,                        -- the inbound_messages.id that it became
    replied        boolean NOT NULL DEFAULT false -- an acknowledgement was sent
);
CREATE INDEX inbound_new ON inbound (id) WHERE outcome IS NULL;
CREATE INDEX inbound_waiting ON inbound (received_at) WHERE outcome = 'waiting';
CREATE INDEX inbound_source ON inbound (source, received_at); -- repetitions, other parts of a message
-- To export or erase a handset's number. Short codes, the destination of nearly all messages, are not in this index.
CREATE INDEX inbound_destination ON inbound (destination) WHERE length(destination) >= 8;
CREATE INDEX inbound_age ON inbound (received_at);

-- The companies of messages to an address. The first word of a message may choose one of several.
CREATE TABLE inbound_routes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address    text COLLATE "C"        NOT NULL CHECK (address <> ''), -- as handsets.Address writes it
    keyword    text COLLATE "C"        NOT NULL DEFAULT '',            -- as handsets.Word writes it; '': any text
    carrier    text COLLATE "C"        NOT NULL DEFAULT '',            -- '': any
    company_id bigint      NOT NULL,
    sender     text        NOT NULL DEFAULT '',            -- the sender that STOP refers to; '': the company's senders
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (address, keyword, carrier)
);

-- Whole messages from handsets to companies. Their ids come from messages_id_seq, because webhooks number messages
-- in both directions with one sequence.
CREATE TABLE inbound_messages (
    id          bigint      PRIMARY KEY,
    company_id  bigint      NOT NULL,
    received_at timestamptz NOT NULL, -- of the last part
    carrier     text        NOT NULL,
    source      text COLLATE "C"        NOT NULL, -- E.164 if it is a number of the country
    destination text COLLATE "C"        NOT NULL,
    body        text,                 -- NULL: no text in a supported coding
    parts       smallint    NOT NULL
);
CREATE INDEX inbound_messages_company ON inbound_messages (company_id, received_at, id);
CREATE INDEX inbound_messages_age ON inbound_messages (received_at);
-- To export or erase a number, as above. The first also serves a company's list of one number.
CREATE INDEX inbound_messages_source ON inbound_messages (source, company_id, received_at, id);
CREATE INDEX inbound_messages_destination ON inbound_messages (destination) WHERE length(destination) >= 8;

-- Numbers that get no messages from a sender. The unique index serves sends, the primary key a company's list.
CREATE TABLE opt_outs (
    company_id   bigint      NOT NULL,
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    phone_number text COLLATE "C"        NOT NULL, -- E.164
    sender       text COLLATE "C"        NOT NULL DEFAULT '', -- '': all senders of the company
    source       text        NOT NULL CHECK (source IN ('handset', 'api')),
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (company_id, id),
    UNIQUE (company_id, phone_number, sender)
);
