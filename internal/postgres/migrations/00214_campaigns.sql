-- The customer's own names of campaigns: '' is none, as batches of the API have.
ALTER TABLE batches ADD COLUMN name text NOT NULL DEFAULT '';
ALTER TABLE campaign_drafts ADD COLUMN name text NOT NULL DEFAULT '';
