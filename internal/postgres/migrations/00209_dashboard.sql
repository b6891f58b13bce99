-- Files of recipients that were checked and wait for the user's confirmation.
CREATE TABLE campaign_drafts (
    ulid       uuid        PRIMARY KEY,
    company_id bigint      NOT NULL,
    sender     text        NOT NULL,
    template   text        NOT NULL,
    recipients jsonb       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX campaign_drafts_company ON campaign_drafts (company_id, created_at);
