-- All messages of a company and month as one CSV file, kept for some days.
CREATE TABLE exports (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    company_id  bigint      NOT NULL,
    month       date        NOT NULL, -- its first day, in Burundi
    language    text        NOT NULL, -- of headings, states and reasons
    operators   boolean     NOT NULL, -- an administrator's: numbers are obscured. Customers do not see it
    bodies      boolean     NOT NULL, -- with texts
    asked_at    timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    taken_until timestamptz NOT NULL DEFAULT now(), -- the process that writes it has it until then
    first       bigint,                             -- messages.id, to show the progress; NULL: it has not begun
    position    bigint,                             -- up to which its rows are written
    last        bigint,
    texts_from  timestamptz,                        -- texts of earlier messages are left out. NULL: of none
    messages    bigint      NOT NULL DEFAULT 0, -- rows
    size        bigint      NOT NULL DEFAULT 0, -- bytes
    done_at     timestamptz,                    -- NULL: it is being written
    gone        text        NOT NULL DEFAULT '' -- why its content is deleted, or was given up
);
CREATE INDEX exports_company ON exports (company_id, id);
CREATE UNIQUE INDEX exports_one ON exports (company_id, operators) WHERE done_at IS NULL; -- one at a time
CREATE INDEX exports_due ON exports (taken_until) WHERE done_at IS NULL;

-- Their content in pieces of 256 KiB (pieceSize); the last one is shorter. PostgreSQL compresses them.
CREATE TABLE export_pieces (
    export_id bigint  NOT NULL REFERENCES exports ON DELETE CASCADE,
    n         integer NOT NULL, -- from 0
    content   bytea   NOT NULL,
    PRIMARY KEY (export_id, n)
);
