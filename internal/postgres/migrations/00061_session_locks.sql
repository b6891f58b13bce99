-- +goose Up

-- Whose process holds an advisory lock of its own session for as long as it
-- lives is known to be dead as soon as nobody has that lock.
ALTER TABLE dispatchers ADD COLUMN session boolean NOT NULL DEFAULT false; -- false: of a release that had none
-- Since when it has the lock: one that was lost and had again in between two looks
-- of the others has not been gone all the time.
ALTER TABLE dispatchers ADD COLUMN session_at timestamptz NOT NULL DEFAULT now();
