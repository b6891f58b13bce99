-- Campaigns whose file was checked, until all of it is sent. A campaign's batch has its ULID.
CREATE TABLE campaigns (
    ulid        uuid        PRIMARY KEY,
    company_id  bigint      NOT NULL,
    name        text        NOT NULL,
    sender      text        NOT NULL,
    template    text        NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    taken_until timestamptz, -- the process that sends it has it until then; NULL: nobody has begun to send it
    paused      text        NOT NULL DEFAULT '' -- the reason of the refusal of its next part; '': none was refused
);
CREATE INDEX campaigns_company ON campaigns (company_id, created_at);

-- The lines of their files.
CREATE TABLE campaign_rows (
    campaign  uuid     NOT NULL REFERENCES campaigns ON DELETE CASCADE,
    n         integer  NOT NULL, -- in the order of the file
    line      integer  NOT NULL, -- as an editor counts
    number    text     NOT NULL, -- '' if the line is wrong
    variables jsonb,
    segments  smallint NOT NULL,
    ucs2      boolean  NOT NULL,
    fault     text,              -- what is wrong with the line, in the user's language
    opted_out boolean  NOT NULL,
    repeated  boolean  NOT NULL, -- a line before has the number, too
    PRIMARY KEY (campaign, n)
);
