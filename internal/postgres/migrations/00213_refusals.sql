-- What a carrier refuses. Databases of some builds between two releases have these columns already.
ALTER TABLE outbox
    ADD COLUMN IF NOT EXISTS refused    text, -- why a carrier last refused it for now; NULL: none has
    ADD COLUMN IF NOT EXISTS refused_at timestamptz;

ALTER TABLE messages
    ADD COLUMN IF NOT EXISTS refused    text, -- the same once it has left the outbox
    ADD COLUMN IF NOT EXISTS refused_at timestamptz;

ALTER TABLE links
    ADD COLUMN IF NOT EXISTS refused      jsonb   NOT NULL DEFAULT '{}', -- submit_sm that it refused in the last minute, by status
    ADD COLUMN IF NOT EXISTS senders_held integer NOT NULL DEFAULT 0;    -- senders whose messages wait because it refuses them all
