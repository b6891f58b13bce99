-- Orders of credits, what was paid for them, and the documents of the sales. Prices are centimes, sums whole francs.
-- An order is open until it is paid or cancelled; without a payment it expires 30 days after created_at.
CREATE TABLE orders (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    company_id   bigint      NOT NULL,
    user_id      bigint,               -- who ordered; NULL: an operator
    once         uuid UNIQUE,          -- key of the form
    credits      bigint      NOT NULL CHECK (credits > 0),
    centimes     bigint      NOT NULL CHECK (centimes > 0), -- price of a credit, which holds while the order is open
    reference    text        NOT NULL DEFAULT '' CHECK (char_length(reference) <= 100), -- of the payment, by the customer
    created_at   timestamptz NOT NULL DEFAULT now(),
    paid_at      timestamptz,          -- its document is in invoices
    cancelled_at timestamptz,
    cancelled_by text        NOT NULL DEFAULT '', -- actor, as the audit log has it
    reason       text        NOT NULL DEFAULT '' CHECK (char_length(reason) <= 500), -- of the cancellation
    CHECK (paid_at IS NULL OR cancelled_at IS NULL)
);
CREATE INDEX orders_company ON orders (company_id, id);
CREATE INDEX orders_open ON orders (id) WHERE paid_at IS NULL AND cancelled_at IS NULL;

-- The latest picture or PDF of a payment, by the customer.
CREATE TABLE order_slips (
    order_id bigint PRIMARY KEY REFERENCES orders,
    name     text        NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
    type     text        NOT NULL,
    size     integer     NOT NULL,
    at       timestamptz NOT NULL,
    document bytea       NOT NULL CHECK (octet_length(document) <= 5242880)
);
ALTER TABLE order_slips ALTER document SET STORAGE EXTERNAL; -- its formats are compressed already

-- Payments as operators record them. Insert only.
CREATE TABLE order_payments (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id      bigint      NOT NULL REFERENCES orders,
    once          uuid UNIQUE, -- key of the form
    francs        bigint      NOT NULL CHECK (francs > 0),
    way           text        NOT NULL CHECK (way IN ('bank', 'mobile', 'cash')),
    reference     text        NOT NULL CHECK (char_length(reference) BETWEEN 1 AND 100),
    reference_key text COLLATE "C" NOT NULL, -- its letters and digits, in capitals
    paid_on       date        NOT NULL,
    recorded_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    recorded_by   text        NOT NULL -- actor, as the audit log has it
);
CREATE INDEX order_payments_order ON order_payments (order_id);
CREATE INDEX order_payments_reference ON order_payments (reference_key);
CREATE TRIGGER order_payments_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON order_payments
    FOR EACH STATEMENT EXECUTE FUNCTION insert_only();

-- The last number of each series, from its first document on. The transaction that takes the next one locks the row
-- until its commit: no gap, and times in the order of numbers.
CREATE TABLE invoice_series (
    kind      text COLLATE "C" PRIMARY KEY CHECK (kind IN ('sale', 'credit_note', 'receipt')),
    last      bigint      NOT NULL,
    issued_at timestamptz NOT NULL -- of the last number
);

-- Documents of sales: invoices, credit notes, and receipts where no invoices are configured. Insert only. Each has one
-- row of the ledger.
CREATE TABLE invoices (
    kind       text COLLATE "C" NOT NULL CHECK (kind IN ('sale', 'credit_note', 'receipt')),
    number     bigint      NOT NULL CHECK (number > 0),
    order_id   bigint      NOT NULL REFERENCES orders,
    company_id bigint      NOT NULL,
    refers_to  bigint,                                -- number of the invoice that a credit note corrects
    issued_at  timestamptz NOT NULL,
    issued_by  text        NOT NULL, -- actor, as the audit log has it
    credits    bigint      NOT NULL CHECK (credits > 0),
    centimes   bigint      NOT NULL CHECK (centimes > 0),
    net        bigint      NOT NULL CHECK (net >= 0),
    taxes      jsonb       NOT NULL, -- each with its name, rate and sum
    total      bigint      NOT NULL CHECK (total >= net),
    paid       bigint      NOT NULL CHECK (paid >= 0), -- of a sale; the rest over its total is noted there
    way        text        NOT NULL DEFAULT '',        -- of the last payment
    seller     jsonb       NOT NULL, -- as it was
    customer   jsonb       NOT NULL, -- as it was
    reason     text        NOT NULL DEFAULT '' CHECK (char_length(reason) <= 500), -- of a credit note
    ref        uuid        NOT NULL UNIQUE, -- of its row in the ledger
    PRIMARY KEY (kind, number),
    CHECK ((kind = 'credit_note') = (refers_to IS NOT NULL))
);
CREATE UNIQUE INDEX invoices_sale ON invoices (order_id) WHERE kind <> 'credit_note'; -- an order is sold once
CREATE INDEX invoices_credited ON invoices (refers_to) WHERE kind = 'credit_note';
CREATE INDEX invoices_company ON invoices (company_id, issued_at);
CREATE INDEX invoices_time ON invoices (issued_at);
CREATE TRIGGER invoices_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON invoices
    FOR EACH STATEMENT EXECUTE FUNCTION insert_only();

-- Numbers whose invoices a restore lost: customers and the tax office have them. Insert only.
CREATE TABLE invoice_gaps (
    kind   text COLLATE "C" NOT NULL CHECK (kind IN ('sale', 'credit_note', 'receipt')),
    first  bigint      NOT NULL,
    last   bigint      NOT NULL CHECK (last >= first),
    reason text        NOT NULL,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (kind, first)
);
CREATE TRIGGER invoice_gaps_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON invoice_gaps
    FOR EACH STATEMENT EXECUTE FUNCTION insert_only();

ALTER TABLE letters DROP CONSTRAINT letters_kind_check;
ALTER TABLE letters ADD CONSTRAINT letters_kind_check CHECK (kind IN ('approval', 'verification', 'sender', 'registration',
    'balance', 'webhook', 'endpoint', 'tries', 'password', 'two-step', 'key', 'reset', 'order', 'order-paid',
    'order-cancelled', 'credit-note'));
