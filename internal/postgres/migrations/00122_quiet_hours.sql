-- +goose Up

-- When a company's batches are not sent, in the hours of Burundi: 21:00-06:00, none,
-- or NULL for what the installation says.
ALTER TABLE companies ADD COLUMN quiet_hours text CHECK (quiet_hours = 'none' OR quiet_hours ~ '^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$'
    AND split_part(quiet_hours, '-', 1) <> split_part(quiet_hours, '-', 2));
