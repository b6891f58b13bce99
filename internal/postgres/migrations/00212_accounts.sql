-- Letters about an account have company 0, and the user as their subject.
ALTER TABLE letters DROP CONSTRAINT letters_kind_check, ADD CONSTRAINT letters_kind_check CHECK (kind IN
    ('approval', 'verification', 'sender', 'balance', 'webhook', 'endpoint', 'tries', 'password', 'two-step', 'key'));

-- What the session's next pages show once, by kind; each text is sealed with a key made from the token.
ALTER TABLE sessions DROP COLUMN once, ADD COLUMN once jsonb NOT NULL DEFAULT '{}';
