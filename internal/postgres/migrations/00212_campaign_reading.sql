-- How a campaign's file was read: its encoding, its sheet, the column of the numbers.
ALTER TABLE campaigns ADD COLUMN reading jsonb NOT NULL DEFAULT '{}';
