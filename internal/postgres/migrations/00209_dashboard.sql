-- Campaigns with a checked file, until all of it is sent. A campaign's batch has its ULID.
CREATE TABLE campaigns (
    ulid        uuid        PRIMARY KEY,
    company_id  bigint      NOT NULL,
    name        text        NOT NULL,
    sender      text        NOT NULL,
    template    text        NOT NULL,
    cost_center text, -- of all its messages
    created_at  timestamptz NOT NULL DEFAULT now(),
    taken_until timestamptz, -- the process that sends it has it until then; NULL: sending has not begun
    paused      text        NOT NULL DEFAULT '' -- why its next part was refused; '': it was not
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
    fault     text,              -- what is wrong with the line, in the user's language; of a campaign that has begun: why a later part left it out
    opted_out boolean  NOT NULL,
    repeated  boolean  NOT NULL, -- an earlier line has the number, too
    PRIMARY KEY (campaign, n)
);
