-- What a route does with a message besides giving it to the company.
ALTER TABLE inbound_routes
    ADD COLUMN answer      text CHECK (answer <> ''), -- sent to the handset, at the company's expense; NULL: none
    ADD COLUMN hours       text,                      -- of answers, in Burundi's time: 08:00-18:00; NULL: always
    -- The groups that the number joins and leaves; NULL: none. A group with a route cannot be deleted.
    ADD COLUMN join_group  bigint REFERENCES contact_groups,
    ADD COLUMN leave_group bigint REFERENCES contact_groups;

-- Of a message under a route with an answer; NULL under all others.
ALTER TABLE inbound_messages
    ADD COLUMN keyword   text COLLATE "C", -- the route's
    ADD COLUMN answer    text COLLATE "C", -- due; sent; or why none is sent
    ADD COLUMN answer_id uuid;             -- ULID of the answer that was sent
CREATE INDEX inbound_messages_due ON inbound_messages (id) WHERE answer = 'due';
-- Whether the company's owner has been told that answers lack credits.
CREATE INDEX inbound_messages_unpaid ON inbound_messages (company_id, received_at) WHERE answer = 'insufficient_credits';

-- How far a company's people have read the messages from a handset.
CREATE TABLE read_marks (
    phone_number text COLLATE "C" NOT NULL, -- as inbound_messages.source; '': of all handsets
    company_id   bigint           NOT NULL,
    up_to        bigint           NOT NULL, -- inbound_messages.id
    read_at      timestamptz      NOT NULL DEFAULT now(),
    PRIMARY KEY (phone_number, company_id)
);
CREATE INDEX read_marks_age ON read_marks (read_at);
