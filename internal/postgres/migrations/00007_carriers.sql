-- +goose Up

ALTER TABLE links
    ADD COLUMN served_at timestamptz NOT NULL DEFAULT now(),  -- when it last could carry messages
    ADD COLUMN broken    boolean     NOT NULL DEFAULT false,  -- its breaker is open
    ADD COLUMN id_format text        NOT NULL DEFAULT '';     -- how its receipts write ids, once learnt

-- Messages from handsets. The contract has no event for them; operators see
-- them.
CREATE TABLE inbound (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    received_at timestamptz NOT NULL DEFAULT now(),
    carrier     text        NOT NULL,
    link        text        NOT NULL,
    source      text        NOT NULL,
    destination text        NOT NULL,
    data_coding smallint    NOT NULL,
    esm_class   smallint    NOT NULL,
    body        text,              -- NULL: not text in a coding we read
    octets      bytea       NOT NULL -- as it came, header included
);
