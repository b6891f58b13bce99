-- Money: what a month's ledger is made of, and what a credit and a segment cost. Amounts are centimes, hundredths of a
-- Burundi franc.

-- A correction is an adjustment that is no purchase: credits taken back, or given for a mistake.
ALTER TABLE ledger DROP CONSTRAINT ledger_kind_check;
ALTER TABLE ledger ADD CONSTRAINT ledger_kind_check CHECK (kind IN ('adjustment', 'correction', 'send', 'refund'));

-- Sums of a company's adjustments and refunds in a period. A send writes nothing here.
CREATE INDEX ledger_others ON ledger (company_id, id) INCLUDE (created_at, amount, kind) WHERE kind <> 'send';

-- Price of a credit to a company from a day on in Burundi, until its next row.
CREATE TABLE credit_prices (
    company_id bigint NOT NULL, -- 0: companies without a price of their own
    valid_from date   NOT NULL,
    centimes   bigint CHECK (centimes >= 0), -- NULL: none from that day on
    PRIMARY KEY (company_id, valid_from)
);

-- Price of a segment that a carrier accepts, in the same way.
CREATE TABLE carrier_tariffs (
    carrier    text COLLATE "C"   NOT NULL,
    valid_from date   NOT NULL,
    centimes   bigint CHECK (centimes >= 0),
    PRIMARY KEY (carrier, valid_from)
);
