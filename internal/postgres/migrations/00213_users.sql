-- A disabled user cannot sign in, and their tokens are refused.
ALTER TABLE users ADD COLUMN disabled_at timestamptz;

DROP TRIGGER users_notice ON users;
CREATE TRIGGER users_notice AFTER UPDATE OF test_number, test_verified_at, disabled_at ON users
    FOR EACH ROW EXECUTE FUNCTION notice('account', 'id');

ALTER TABLE letters DROP CONSTRAINT letters_kind_check, ADD CONSTRAINT letters_kind_check CHECK (kind IN
    ('approval', 'verification', 'sender', 'balance', 'webhook', 'endpoint', 'tries', 'password', 'two-step', 'key', 'reset'));
