CREATE TABLE users (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email         text COLLATE "C"        NOT NULL UNIQUE CHECK (email = lower(email)),
    name          text        NOT NULL,
    password_hash text        NOT NULL,
    administrator boolean     NOT NULL DEFAULT false,
    language      text        NOT NULL DEFAULT 'fr' CHECK (language IN ('fr', 'en', 'rn')), -- of mails and pages
    created_at    timestamptz NOT NULL DEFAULT now(),
    disabled_at   timestamptz, -- the user cannot sign in, and their tokens are refused. NULL: not disabled
    -- The one test number of the account. (rule api 4.4)
    test_number       text,
    test_verified_at  timestamptz,
    test_replacements integer NOT NULL DEFAULT 0, -- how often a verified number was replaced
    -- The one authenticator of the account. (RFC 6238)
    factor_secret       text,                       -- base32, sealed if a key is configured
    factor_confirmed_at timestamptz,                -- NULL: no code has been entered yet
    factor_step         bigint  NOT NULL DEFAULT 0, -- time step of the last code; a code works once
    recovery_hashes     bytea[] NOT NULL DEFAULT '{}' -- each code replaces one of the authenticator's, once
);

-- A customer receives a token as "id|secret". The table has the secret's SHA-256 only. (rule api 5)
CREATE TABLE api_tokens (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id      bigint      NOT NULL REFERENCES users,
    name         text        NOT NULL,
    secret_hash  bytea       NOT NULL CHECK (octet_length(secret_hash) = 32),
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz, -- written once a minute at most
    revoked_at   timestamptz,
    -- Its scopes: send (all requests but GET), read (GET); its end; its addresses.
    scopes       text[]      NOT NULL DEFAULT '{send,read}' CHECK (scopes <@ '{send,read}' AND cardinality(scopes) > 0),
    expires_at   timestamptz,                                                        -- NULL: never
    networks     cidr[]      NOT NULL DEFAULT '{}' CHECK (cardinality(networks) <= 10) -- empty: any address
) WITH (fillfactor = 70);
CREATE INDEX api_tokens_user_id ON api_tokens (user_id);

-- A new token sends a notice too, because processes cache unknown tokens. last_used_at sends none.
CREATE TRIGGER api_tokens_notice AFTER INSERT OR UPDATE OF user_id, secret_hash, revoked_at OR DELETE ON api_tokens
    FOR EACH ROW EXECUTE FUNCTION notice('account', 'user_id');

CREATE TABLE companies (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner_id       bigint      NOT NULL UNIQUE REFERENCES users,
    name           text        NOT NULL,
    approved       boolean     NOT NULL DEFAULT false,
    verified       boolean     NOT NULL DEFAULT false,
    smart_encoding boolean     NOT NULL DEFAULT false, -- characters outside GSM-7 are replaced by look-alikes
    opt_outs       boolean     NOT NULL DEFAULT false, -- it has had an entry in opt_outs; never reset
    quiet_hours    text, -- no batches are sent then: '21:00-06:00' in Burundi, 'none', or NULL: as configured
    -- Limits. NULL: as configured, 0: no limit.
    credits_a_day  bigint  CHECK (credits_a_day >= 0),
    repeat_seconds integer CHECK (repeat_seconds BETWEEN 0 AND 86400), -- between two sends of a text to a number
    repeats_a_day  integer CHECK (repeats_a_day >= 0),                 -- sends of a text to a number
    number_a_day   integer CHECK (number_a_day >= 0),                  -- messages to a number
    created_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT companies_quiet_hours_check CHECK (quiet_hours = 'none'
        OR quiet_hours ~ '^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$'
        AND split_part(quiet_hours, '-', 1) <> split_part(quiet_hours, '-', 2))
);

-- For all people of a company. A new company has none: its owner's row sends the notice.
CREATE TRIGGER companies_notice AFTER UPDATE OR DELETE ON companies
    FOR EACH ROW EXECUTE FUNCTION notice('company', 'id');

-- The company that a user acts for, and the user's role there. companies.owner_id is one of its owners, who gets the
-- mails about the company.
ALTER TABLE users
    ADD COLUMN company_id bigint REFERENCES companies,
    ADD COLUMN role       text CHECK (role IN ('owner', 'sender', 'developer', 'finance', 'reader')),
    ADD CHECK ((company_id IS NULL) = (role IS NULL));
CREATE INDEX users_company_id ON users (company_id);

CREATE TRIGGER users_notice AFTER UPDATE OF test_number, test_verified_at, disabled_at, company_id ON users
    FOR EACH ROW EXECUTE FUNCTION notice('account', 'id');

-- A company's own statements for its approval. A company without a row has stated nothing.
CREATE TABLE company_facts (
    company_id     bigint PRIMARY KEY REFERENCES companies,
    nif            text        NOT NULL DEFAULT '',
    trade_register text        NOT NULL DEFAULT '',
    address        text        NOT NULL DEFAULT '',
    phone          text        NOT NULL DEFAULT '',
    contact        text        NOT NULL DEFAULT '',
    document       bytea CHECK (octet_length(document) <= 5242880), -- NULL: none, or deleted by an administrator
    document_name  text        NOT NULL DEFAULT '', -- of the uploaded file; '': none was uploaded
    document_type  text        NOT NULL DEFAULT '',
    document_size  integer     NOT NULL DEFAULT 0,
    document_at    timestamptz,
    changed_at     timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE company_facts ALTER document SET STORAGE EXTERNAL; -- its formats are compressed already

-- A sender and its request, which waits while it is neither approved nor refused; approved counts more than refused.
CREATE TABLE senders (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    company_id bigint      NOT NULL REFERENCES companies,
    name       text COLLATE "C"        NOT NULL CHECK (name ~ '^[A-Za-z0-9]{1,11}$'),
    country    text        NOT NULL DEFAULT 'BI' CHECK (country ~ '^[A-Z]{2}$'),
    approved   boolean     NOT NULL DEFAULT false,
    purpose    text        NOT NULL DEFAULT '' CHECK (char_length(purpose) <= 500), -- '': registered by a command
    asked_at   timestamptz NOT NULL DEFAULT now(), -- the last time
    refused_at timestamptz,
    refusal    text        NOT NULL DEFAULT '' CHECK (char_length(refusal) <= 500), -- the reason, for the company
    UNIQUE (company_id, name)
);
CREATE INDEX senders_waiting ON senders (id) WHERE NOT approved AND refused_at IS NULL;

CREATE TRIGGER senders_notice AFTER INSERT OR UPDATE OR DELETE ON senders
    FOR EACH ROW EXECUTE FUNCTION notice('company', 'company_id');

-- One-time codes for test numbers, one row for each code that was sent.
CREATE TABLE test_number_codes (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    user_id      bigint      NOT NULL REFERENCES users,
    phone_number text COLLATE "C"        NOT NULL,
    secret       bytea       NOT NULL, -- the code follows from it and accounts.otp_key
    tries        integer     NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT now(),
    free         boolean     NOT NULL DEFAULT false, -- for a company without credits
    network      bytea                               -- keyed hash of the client's network
);
CREATE INDEX test_number_codes_free ON test_number_codes (created_at) WHERE free;
CREATE INDEX test_number_codes_user ON test_number_codes (user_id, created_at);
CREATE INDEX test_number_codes_number ON test_number_codes (phone_number, created_at);

-- Browsers that have signed in. The cookie has the token, the table its SHA-256.
CREATE TABLE sessions (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token_hash  bytea       NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    user_id     bigint      NOT NULL REFERENCES users ON DELETE CASCADE,
    passed      boolean     NOT NULL, -- false: the password was right, the second factor is missing
    admin_until timestamptz,          -- end of the administrators' scope
    address     text        NOT NULL,
    device      text        NOT NULL,
    once        jsonb       NOT NULL DEFAULT '{}', -- texts that the next pages show once, by kind; each is sealed with a key made from the token
    created_at  timestamptz NOT NULL DEFAULT now(),
    seen_at     timestamptz NOT NULL DEFAULT now(), -- to the minute
    expires_at  timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX sessions_user_id ON sessions (user_id);

-- Mailed links. A visitor with the token can read the mailbox. An invitation has the company and the role.
CREATE TABLE mail_links (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    purpose    text COLLATE "C"        NOT NULL CHECK (purpose IN ('sign-up', 'password', 'invitation', 'none')),
    token_hash bytea       NOT NULL UNIQUE CHECK (octet_length(token_hash) = 32),
    email      text COLLATE "C"        NOT NULL CHECK (email = lower(email)),
    name       text        NOT NULL DEFAULT '',
    language   text        NOT NULL CHECK (language IN ('fr', 'en', 'rn')),
    expires_at timestamptz NOT NULL,
    company_id bigint REFERENCES companies,
    role       text CHECK (role IN ('owner', 'sender', 'developer', 'finance', 'reader')),
    CHECK ((purpose = 'invitation') = (company_id IS NOT NULL) AND (company_id IS NULL) = (role IS NULL))
);
CREATE INDEX mail_links_email ON mail_links (email, purpose);
CREATE INDEX mail_links_company_id ON mail_links (company_id) WHERE company_id IS NOT NULL;

-- Mails until a mail server accepts them. A row has the subject only: the mail is written from the state at its
-- sending. Letters about an account have company 0 and the user as their subject.
CREATE TABLE letters (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text COLLATE "C"        NOT NULL CHECK (kind IN ('approval', 'verification', 'sender', 'registration', 'balance', 'webhook',
        'endpoint', 'tries', 'password', 'two-step', 'key', 'reset')),
    company_id bigint      NOT NULL,
    subject    bigint      NOT NULL DEFAULT 0, -- senders.id, sender_carriers.id; 0: the company itself; negative: nobody
    said       jsonb,                          -- values that change with time, such as the balance
    written_at timestamptz NOT NULL DEFAULT now(),
    due_at     timestamptz NOT NULL DEFAULT now(),
    tries      integer     NOT NULL DEFAULT 0,
    UNIQUE (company_id, kind, subject)
);

CREATE TRIGGER letters_notice AFTER INSERT OR UPDATE OF written_at ON letters
    FOR EACH ROW EXECUTE FUNCTION notice('company', 'company_id');
