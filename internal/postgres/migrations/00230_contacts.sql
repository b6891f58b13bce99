-- Contacts of companies. A transaction locks contacts by number, then members, groups by id, and the book last: the
-- counts of groups and books are exact, and their rows are locked only until the commit that follows.
CREATE TABLE contacts (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    company_id     bigint      NOT NULL,
    phone_number   text COLLATE "C" NOT NULL, -- E.164
    name           text        NOT NULL DEFAULT '' CHECK (char_length(name) <= 200),
    name_key       text COLLATE "C" NOT NULL DEFAULT '', -- to search: in lower case, without accents
    language       text COLLATE "C" NOT NULL DEFAULT '' CHECK (language IN ('', 'rn', 'fr', 'en', 'sw')),
    fields         jsonb       NOT NULL DEFAULT '{}', -- the company's own: texts by their names in contact_books
    consent_source text        NOT NULL DEFAULT '' CHECK (char_length(consent_source) <= 200), -- "": not known
    consented_at   timestamptz,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX contacts_number ON contacts (company_id, phone_number);
CREATE INDEX contacts_company ON contacts (company_id, id);
CREATE INDEX contacts_name ON contacts (company_id, name_key, id);

CREATE TABLE contact_groups (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    company_id bigint      NOT NULL,
    name       text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
    name_key   text COLLATE "C" NOT NULL, -- in lower case, without accents: a company has each once
    members    integer     NOT NULL DEFAULT 0 CHECK (members >= 0), -- rows of contact_members
    created_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX contact_groups_name ON contact_groups (company_id, name_key);

-- Who adds a row has locked its group and its contact, so neither is deleted without it.
CREATE TABLE contact_members (
    group_id   bigint NOT NULL,
    contact_id bigint NOT NULL,
    PRIMARY KEY (group_id, contact_id)
);
CREATE INDEX contact_members_contact ON contact_members (contact_id);

-- What a company's contacts have in common. A company without contacts may have no row.
CREATE TABLE contact_books (
    company_id bigint  PRIMARY KEY,
    contacts   integer NOT NULL DEFAULT 0 CHECK (contacts >= 0), -- rows of contacts
    fields     text[]  NOT NULL DEFAULT '{}' -- names of fields that a contact has or had, in the order of their first use
) WITH (fillfactor = 50);

-- Imports: a file whose lines are checked and counted, and, once a person has confirmed it, merged in steps.
CREATE TABLE contact_imports (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    company_id     bigint      NOT NULL,
    name           text        NOT NULL, -- of the file
    reading        jsonb       NOT NULL, -- how the file was read
    columns        jsonb       NOT NULL, -- what each column of the file becomes
    group_id       bigint,               -- every contact of the file joins it; NULL: none
    group_names    text[]      NOT NULL, -- of the file
    consent_source text        NOT NULL DEFAULT '', -- of contacts without one; "": not known
    consented_at   timestamptz,
    created_at     timestamptz NOT NULL DEFAULT now(),
    confirmed_at   timestamptz,          -- NULL: nothing is merged
    due_at         timestamptz,          -- of the next step
    position       integer     NOT NULL DEFAULT 0, -- contact_import_rows.n up to which they are merged
    done_at        timestamptz,
    stopped        text        NOT NULL DEFAULT '', -- why it ended before its last line
    lines          integer     NOT NULL DEFAULT 0,
    -- Counts of lines: as the check expects them, and once it is confirmed as the steps find them.
    added          integer     NOT NULL DEFAULT 0,
    changed        integer     NOT NULL DEFAULT 0,
    unchanged      integer     NOT NULL DEFAULT 0,
    refused        integer     NOT NULL DEFAULT 0,
    repeated       integer     NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX contact_imports_company ON contact_imports (company_id, id);
CREATE INDEX contact_imports_due ON contact_imports (due_at) WHERE confirmed_at IS NOT NULL AND done_at IS NULL;

-- Their lines, until they are merged; refused ones some time longer.
CREATE TABLE contact_import_rows (
    import_id    bigint  NOT NULL REFERENCES contact_imports ON DELETE CASCADE,
    n            integer NOT NULL, -- from 1
    line         integer NOT NULL, -- as in an editor
    phone_number text COLLATE "C" NOT NULL, -- "": of a refused line
    name         text    NOT NULL,
    language     text    NOT NULL,
    fields       jsonb   NOT NULL,
    group_keys   text[]  NOT NULL, -- name_key of groups
    fault        text,             -- why it is refused, in the user's language; NULL: it is not
    repeated     boolean NOT NULL DEFAULT false, -- a later line has the number, and joins the groups of both
    PRIMARY KEY (import_id, n)
);

-- The groups that a campaign goes to, and those whose members it leaves out; NULL: it goes to the numbers of a file.
ALTER TABLE campaigns ADD COLUMN audience jsonb;

ALTER TABLE letters DROP CONSTRAINT letters_kind_check, ADD CONSTRAINT letters_kind_check CHECK (kind IN ('approval',
    'verification', 'sender', 'registration', 'balance', 'webhook', 'endpoint', 'tries', 'password', 'two-step', 'key', 'reset',
    'contacts'));
