-- +goose Up

-- Senders of companies with messages on the outbox that a claim has put off, since the
-- company or the sender was not approved then. The statement that claims writes it.
DROP TRIGGER companies_hold ON companies;
DROP FUNCTION hold_company();
DROP TABLE holds;
CREATE TABLE holds (
    company_id bigint,
    sender     text, -- its name
    PRIMARY KEY (company_id, sender)
);
