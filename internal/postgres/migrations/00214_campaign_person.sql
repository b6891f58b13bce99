-- The user who continued a paused campaign and sends its further parts; NULL: its batch's.
ALTER TABLE campaigns ADD COLUMN continued_by bigint;
-- It has begun and has no batch: the unknown outcome of its first part was probably a refusal, and people may send it again.
ALTER TABLE campaigns ADD COLUMN unsent boolean NOT NULL DEFAULT false;
