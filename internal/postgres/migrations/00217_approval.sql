-- What a company states about itself for its approval. A company without a row has stated nothing.
CREATE TABLE company_facts (
    company_id     bigint PRIMARY KEY REFERENCES companies,
    nif            text        NOT NULL DEFAULT '',
    trade_register text        NOT NULL DEFAULT '',
    address        text        NOT NULL DEFAULT '',
    phone          text        NOT NULL DEFAULT '',
    contact        text        NOT NULL DEFAULT '',
    document       bytea CHECK (octet_length(document) <= 5242880), -- NULL: none, or an administrator has deleted it
    document_name  text        NOT NULL DEFAULT '', -- of the uploaded file; '': there was none
    document_type  text        NOT NULL DEFAULT '',
    document_size  integer     NOT NULL DEFAULT 0,
    document_at    timestamptz,
    changed_at     timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE company_facts ALTER document SET STORAGE EXTERNAL; -- its formats are compressed already
