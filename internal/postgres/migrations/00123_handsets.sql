-- +goose Up

-- What a carrier delivered of handsets is looked at once it is committed: parts of
-- one message are put together, repetitions dropped, and the rest goes to whom it
-- is for. What was there before stays as it is.
ALTER TABLE inbound
    ADD COLUMN part_reference integer,  -- of a part of a long message; NULL: a whole one
    ADD COLUMN part_total     smallint,
    ADD COLUMN part_number    smallint, -- from 1
    ADD COLUMN outcome        text DEFAULT 'unrouted'
        CHECK (outcome IN ('routed', 'unrouted', 'waiting', 'incomplete', 'duplicate', 'too_long')), -- NULL: nobody has looked yet
    ADD COLUMN message_id     bigint,   -- inbound_messages.id that came of it
    ADD COLUMN replied        boolean NOT NULL DEFAULT false; -- an acknowledgement went out
ALTER TABLE inbound ALTER COLUMN outcome DROP DEFAULT;

CREATE INDEX inbound_new ON inbound (id) WHERE outcome IS NULL;
CREATE INDEX inbound_waiting ON inbound (received_at) WHERE outcome = 'waiting';
-- Repetitions, and the other parts of a message.
CREATE INDEX inbound_source ON inbound (source, received_at);

-- Whose messages to an address of ours are, as operators say. The first word of a
-- message may choose among several companies.
CREATE TABLE inbound_routes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address    text        NOT NULL CHECK (address <> ''), -- as handsets.Address writes it
    keyword    text        NOT NULL DEFAULT '',            -- as handsets.Word writes it; '': any text
    carrier    text        NOT NULL DEFAULT '',            -- '': any
    company_id bigint      NOT NULL,
    sender     text        NOT NULL DEFAULT '',            -- what STOP here means; '': the company's senders
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (address, keyword, carrier)
);

-- Whole messages to companies. Their ids are drawn from the sequence of messages,
-- so that all that webhooks tell of is numbered by one.
CREATE TABLE inbound_messages (
    id          bigint      PRIMARY KEY,
    company_id  bigint      NOT NULL,
    received_at timestamptz NOT NULL, -- of the last part
    carrier     text        NOT NULL,
    source      text        NOT NULL, -- E.164 where it is a number of the country
    destination text        NOT NULL,
    body        text,                 -- NULL: no text in a coding that is read
    parts       smallint    NOT NULL
);
CREATE INDEX inbound_messages_company ON inbound_messages (company_id, received_at, id);
CREATE INDEX inbound_messages_age ON inbound_messages (received_at);

-- Who wants no more from whom. The unique index answers a send, the primary key
-- lists a company's.
CREATE TABLE opt_outs (
    company_id   bigint      NOT NULL,
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    phone_number text        NOT NULL, -- E.164
    sender       text        NOT NULL DEFAULT '', -- '': all senders of the company
    source       text        NOT NULL CHECK (source IN ('handset', 'api')),
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (company_id, id),
    UNIQUE (company_id, phone_number, sender)
);

-- A company that never had one pays nothing for the list: what every process keeps
-- of a company for a moment says whether there may be any. The trigger of 00031
-- tells all when it changes. It is never taken back: that would race with the next
-- entry, and costs such a company one look-up in an index.
ALTER TABLE companies ADD COLUMN opt_outs boolean NOT NULL DEFAULT false;

-- +goose StatementBegin
CREATE FUNCTION opt_outs_listed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE companies SET opt_outs = true WHERE id IN (SELECT DISTINCT company_id FROM listed) AND NOT opt_outs;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER opt_outs_listed AFTER INSERT ON opt_outs
    REFERENCING NEW TABLE AS listed FOR EACH STATEMENT EXECUTE FUNCTION opt_outs_listed();
