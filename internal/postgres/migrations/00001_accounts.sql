-- +goose Up

create table users (
    id            bigint generated always as identity primary key,
    email         text        not null unique check (email = lower(email)),
    name          text        not null,
    password_hash text        not null,
    administrator boolean     not null default false,
    created_at    timestamptz not null default now()
);

-- An API token is handed out as "id|secret"; only the secret's SHA-256 is kept. rule api 5
create table api_tokens (
    id           bigint generated always as identity primary key,
    user_id      bigint      not null references users,
    name         text        not null,
    secret_hash  bytea       not null check (octet_length(secret_hash) = 32),
    created_at   timestamptz not null default now(),
    last_used_at timestamptz,
    revoked_at   timestamptz
) with (fillfactor = 70);

create index api_tokens_user_id on api_tokens (user_id);

create table companies (
    id             bigint generated always as identity primary key,
    owner_id       bigint      not null unique references users,
    name           text        not null,
    approved       boolean     not null default false,
    verified       boolean     not null default false,
    smart_encoding boolean     not null default false,
    created_at     timestamptz not null default now()
);

create table senders (
    id         bigint generated always as identity primary key,
    company_id bigint      not null references companies,
    name       text        not null check (name ~ '^[A-Za-z0-9]{1,11}$'),
    country    text        not null default 'BI' check (country ~ '^[A-Z]{2}$'),
    approved   boolean     not null default false,
    created_at timestamptz not null default now(),
    unique (company_id, name)
);

-- One test number an account. rule api 4.4
create table test_numbers (
    user_id      bigint primary key references users,
    phone_number text        not null,
    verified_at  timestamptz,
    replacements integer     not null default 0, -- how often a verified number was replaced
    created_at   timestamptz not null default now()
);

-- One-time codes of test numbers, a row each one sent.
create table test_number_codes (
    id           bigint generated always as identity primary key,
    user_id      bigint      not null references users,
    phone_number text        not null,
    salt         bytea       not null,
    code_hash    bytea       not null check (octet_length(code_hash) = 32),
    tries        integer     not null default 0,
    spent        boolean     not null default false, -- used, or replaced by a later one
    created_at   timestamptz not null default now()
);

create index test_number_codes_user on test_number_codes (user_id, created_at);
create index test_number_codes_number on test_number_codes (phone_number, created_at);
