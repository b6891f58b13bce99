-- Invoices that the tax office (OBR) must have, each from the transaction that issues it. Without the configuration key
-- ebms.url there are none. The oldest goes first, and one at a time.
CREATE TABLE ebms_reports (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text COLLATE "C" NOT NULL UNIQUE, -- of the invoice, such as F000012
    refers_to     text COLLATE "C",                 -- of a credit note: the name of its invoice, which goes first
    identifier    text        NOT NULL, -- as it is printed
    issued_at     timestamptz NOT NULL,
    due_at        timestamptz NOT NULL DEFAULT now(), -- the next attempt
    claimed_until timestamptz, -- a process reports it; NULL: none does
    tries         integer     NOT NULL DEFAULT 0, -- since an operator last looked at it; each claim counts
    faults        integer     NOT NULL DEFAULT 0, -- failed requests after a login that worked
    words         text        NOT NULL DEFAULT '' CHECK (char_length(words) <= 1000), -- why the last attempt failed
    without_nif   boolean     NOT NULL DEFAULT false, -- reported without the customer's NIF, which the OBR does not know
    refused_at    timestamptz, -- it waits for a person
    finished_at   timestamptz, -- the OBR has it
    settled       text        NOT NULL DEFAULT '' CHECK (char_length(settled) <= 500), -- how a person settled it with the OBR
    reply         bytea,       -- the OBR's, as it came
    signature     text        NOT NULL DEFAULT '', -- of the OBR, in base64
    registered    text        NOT NULL DEFAULT ''  -- the OBR's number
);
CREATE INDEX ebms_reports_pending ON ebms_reports (id) WHERE finished_at IS NULL;
