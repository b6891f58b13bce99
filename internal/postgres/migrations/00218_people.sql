-- What an API key may do: send (every request that is no GET), read (every GET), until when, and from where.
ALTER TABLE api_tokens
    ADD COLUMN scopes     text[] NOT NULL DEFAULT '{send,read}' CHECK (scopes <@ '{send,read}' AND cardinality(scopes) > 0),
    ADD COLUMN expires_at timestamptz,                                                        -- NULL: never
    ADD COLUMN networks   cidr[] NOT NULL DEFAULT '{}' CHECK (cardinality(networks) <= 10); -- empty: any address

-- The company that a user acts for, and what the user may do there. companies.owner_id is one of its owners: mails about the
-- company go there.
ALTER TABLE users
    ADD COLUMN company_id bigint REFERENCES companies,
    ADD COLUMN role       text CHECK (role IN ('owner', 'sender', 'developer', 'finance', 'reader')),
    ADD CHECK ((company_id IS NULL) = (role IS NULL));
UPDATE users SET company_id = c.id, role = 'owner' FROM companies c WHERE c.owner_id = users.id;
CREATE INDEX users_company_id ON users (company_id);

DROP TRIGGER users_notice ON users;
CREATE TRIGGER users_notice AFTER UPDATE OF test_number, test_verified_at, disabled_at, company_id ON users
    FOR EACH ROW EXECUTE FUNCTION notice('account', 'id');

-- All people of a company are concerned. A new company has none: its owner's row sends the notice.
DROP TRIGGER companies_notice ON companies;
CREATE TRIGGER companies_notice AFTER UPDATE OR DELETE ON companies
    FOR EACH ROW EXECUTE FUNCTION notice('company', 'id');

-- An invitation is a mailed link.
ALTER TABLE mail_links
    DROP CONSTRAINT mail_links_purpose_check,
    ADD CONSTRAINT mail_links_purpose_check CHECK (purpose IN ('sign-up', 'password', 'invitation')),
    ADD COLUMN company_id bigint REFERENCES companies,
    ADD COLUMN role       text CHECK (role IN ('owner', 'sender', 'developer', 'finance', 'reader')),
    ADD CHECK ((purpose = 'invitation') = (company_id IS NOT NULL) AND (company_id IS NULL) = (role IS NULL));
CREATE INDEX mail_links_company_id ON mail_links (company_id) WHERE company_id IS NOT NULL;
