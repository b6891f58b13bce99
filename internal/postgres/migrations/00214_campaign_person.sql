-- The user who continued a paused campaign and sends its further parts; NULL: its batch's.
ALTER TABLE campaigns ADD COLUMN continued_by bigint;
