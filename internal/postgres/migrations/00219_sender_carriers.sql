-- A sender at a carrier: many operators of networks register each name. Without a row the carrier's sender_registration
-- in the configuration decides.
CREATE TABLE sender_carriers (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sender_id  bigint      NOT NULL REFERENCES senders ON DELETE CASCADE,
    company_id bigint      NOT NULL, -- the sender's, for the notice
    carrier    text COLLATE "C"        NOT NULL CHECK (char_length(carrier) BETWEEN 1 AND 63),
    state      text        NOT NULL CHECK (state IN ('requested', 'sent', 'approved', 'refused', 'not_needed')),
    works      boolean     NOT NULL GENERATED ALWAYS AS (state IN ('approved', 'not_needed')) STORED, -- messages may go there
    reason     text        NOT NULL DEFAULT '' CHECK (char_length(reason) <= 500), -- of the state, for the company
    submitted_on    date,                               -- when the request went to the carrier
    changed_at timestamptz NOT NULL DEFAULT now(), -- since when it has this state
    UNIQUE (sender_id, carrier)
);
CREATE INDEX sender_carriers_carrier ON sender_carriers (carrier, works);
CREATE INDEX sender_carriers_waiting ON sender_carriers (id) WHERE state IN ('requested', 'sent');

CREATE TRIGGER sender_carriers_notice AFTER INSERT OR UPDATE OR DELETE ON sender_carriers
    FOR EACH ROW EXECUTE FUNCTION notice('company', 'company_id');

-- The latest document about a sender at a carrier, apart from its row: the notice reads the whole row.
CREATE TABLE sender_documents (
    registration_id bigint PRIMARY KEY REFERENCES sender_carriers ON DELETE CASCADE,
    name            text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
    type            text        NOT NULL,
    size            integer     NOT NULL,
    at              timestamptz NOT NULL,
    document        bytea       NOT NULL CHECK (octet_length(document) <= 5242880)
);
ALTER TABLE sender_documents ALTER document SET STORAGE EXTERNAL; -- its formats are compressed already
