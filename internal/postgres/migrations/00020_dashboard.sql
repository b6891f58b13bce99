-- +goose Up

-- The language in which a person is written to.
alter table users add column language text not null default 'fr' check (language in ('fr', 'en', 'rn'));

-- A browser that has signed in. The cookie holds the token, the table its SHA-256.
create table sessions (
    id          bigint generated always as identity primary key,
    token_hash  bytea       not null unique check (octet_length(token_hash) = 32),
    user_id     bigint      not null references users on delete cascade,
    passed      boolean     not null,  -- false: the password was right, the second factor is still to come
    admin_until timestamptz,           -- the end of the administrators' scope
    address     text        not null,
    device      text        not null,
    once        bytea,                 -- what the next page shows and then nobody again, sealed under the token
    created_at  timestamptz not null default now(),
    seen_at     timestamptz not null default now(), -- to the minute
    expires_at  timestamptz not null
) with (fillfactor = 70);

create index sessions_user_id on sessions (user_id);

-- Links that were mailed: whoever follows one reads that mailbox.
create table mail_links (
    id         bigint generated always as identity primary key,
    purpose    text        not null check (purpose in ('sign-up', 'password')),
    token_hash bytea       not null unique check (octet_length(token_hash) = 32),
    email      text        not null check (email = lower(email)),
    name       text        not null default '',
    language   text        not null check (language in ('fr', 'en', 'rn')),
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
);

create index mail_links_email on mail_links (email, purpose);

-- One authenticator an account (RFC 6238).
create table second_factors (
    user_id      bigint primary key references users on delete cascade,
    secret       text        not null,           -- base32, sealed when there is a key
    confirmed_at timestamptz,                    -- null: it was shown and no code has come yet
    last_step    bigint      not null default 0, -- a code counts once
    created_at   timestamptz not null default now()
);

-- Each stands in for one code of the authenticator, once.
create table recovery_codes (
    user_id   bigint not null references users on delete cascade,
    code_hash bytea  not null check (octet_length(code_hash) = 32),
    primary key (user_id, code_hash)
);
