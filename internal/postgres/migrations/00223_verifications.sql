-- Of a message with a one-time code: its text has asterisks in the code's place, and the code follows from the secret and
-- accounts.otp_key. NULL for all others.
ALTER TABLE messages ADD COLUMN secret bytea;

-- Verifications: a company lets the holder of a number prove that they have it. All messages of one have the same code.
CREATE TABLE verifications (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ulid             uuid        NOT NULL UNIQUE,
    company_id       bigint      NOT NULL,
    user_id          bigint      NOT NULL,
    phone_number     text COLLATE "C"        NOT NULL, -- E.164
    sender           text        NOT NULL,
    locale           text        NOT NULL CHECK (locale IN ('rn', 'fr', 'en', 'sw')),
    secret           bytea       NOT NULL, -- of the code
    created_at       timestamptz NOT NULL DEFAULT now(),
    expires_at       timestamptz NOT NULL,
    test             boolean     NOT NULL, -- by the test sender: no live one has its code or its count
    sent_at          timestamptz NOT NULL DEFAULT now(), -- the last message
    asked            bytea, -- hash of the request for it; NULL: it had a key
    state            smallint    NOT NULL DEFAULT 0, -- 0 pending, 1 approved, 2 cancelled, 3 expired, 4 failed, 5 too many wrong codes
    finished_at      timestamptz,
    sends            smallint    NOT NULL DEFAULT 1 CHECK (sends BETWEEN 0 AND 5), -- messages, also those on their way
    wrong            smallint    NOT NULL DEFAULT 0 CHECK (wrong BETWEEN 0 AND 5), -- codes
    wrong_at         timestamptz, -- the last of them
    message          uuid        NOT NULL, -- ULID of the last message
    earlier          uuid[]      NOT NULL DEFAULT '{}', -- of the others
    carrier          text        NOT NULL, -- of that message's number
    client_reference text,
    amount           text,  -- of a payment, which its check must repeat
    payee            text,
    app_hash         text,  -- of an Android app
    web_domain       text,
    end_user         bytea  -- keyed hash of the customer's own name of the person
) WITH (fillfactor = 70);
CREATE INDEX verifications_number ON verifications (phone_number, created_at);
CREATE INDEX verifications_end_user ON verifications (company_id, end_user, created_at) WHERE end_user IS NOT NULL;
CREATE INDEX verifications_company ON verifications (company_id, id);
CREATE INDEX verifications_due ON verifications (expires_at) WHERE state = 0;
CREATE INDEX verifications_age ON verifications (created_at);

-- Companies' own texts of verifications. One is used once it is approved, until another one is.
CREATE TABLE verification_texts (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    company_id bigint      NOT NULL,
    locale     text COLLATE "C" NOT NULL CHECK (locale IN ('rn', 'fr', 'en', 'sw')),
    text       text        NOT NULL CHECK (char_length(text) <= 160), -- that was asked for last
    used       text        CHECK (char_length(used) <= 160), -- that was approved last; NULL: ours is used
    approved   boolean     NOT NULL DEFAULT false, -- the text that was asked for last
    refused_at timestamptz,
    refusal    text        NOT NULL DEFAULT '' CHECK (char_length(refusal) <= 500), -- the reason, for the company
    asked_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (company_id, locale)
);

-- Whether messages reached people, as customers report it and finished verifications show it, by day in Burundi.
CREATE TABLE conversions (
    day        date   NOT NULL,
    carrier    text COLLATE "C"   NOT NULL,
    block      text COLLATE "C"   NOT NULL, -- 10,000 neighbouring numbers: the first digits of their E.164 form
    company_id bigint NOT NULL,
    asked      bigint NOT NULL DEFAULT 0,
    converted  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (day, carrier, block, company_id)
) WITH (fillfactor = 50);

-- What customers reported of messages: each report replaces the one before, where that one was counted.
CREATE TABLE feedback (
    message_id bigint  PRIMARY KEY,
    company_id bigint  NOT NULL,
    day        date    NOT NULL, -- with carrier and block, the row of conversions that counts it
    carrier    text    NOT NULL,
    block      text    NOT NULL,
    converted  boolean NOT NULL,
    at         timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX feedback_age ON feedback (at);
