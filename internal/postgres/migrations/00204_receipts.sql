-- One row per copy of a segment that a carrier accepted, or may have because it did not answer. A segment that was sent
-- twice has two rows.
CREATE TABLE segments (
    message_id   bigint      NOT NULL,
    segment      smallint    NOT NULL, -- from 1
    total        smallint    NOT NULL,
    handset      integer,              -- last eight digits of the message's number, to match receipts without messages
    carrier      text COLLATE "C"        NOT NULL,
    link         text        NOT NULL,
    key          text COLLATE "C"        NOT NULL, -- carrier id as it is matched: lower case, no leading zeros; ? and the reference: not answered; ! and the reference: accepted without an id
    carrier_id   text,                 -- as the carrier wrote it, if that differs
    submitted_at timestamptz NOT NULL, -- with an empty link: when it was recorded that a carrier may have it
    state        smallint,             -- the first final state: 1 sent, 2 failed
    receipt      text,                 -- the receipt's stat (DELIVRD, …)
    error        text,
    receipt_at   timestamptz,
    mark         smallint              -- a later decision: 1 a second carrier has got the message since; 2 an operator has sent the segment again
) WITH (fillfactor = 45);
CREATE INDEX segments_key ON segments (key, carrier);
CREATE INDEX segments_message ON segments (message_id);
-- Copies without an answer. Settling writes none of the columns, so updates stay HOT.
CREATE INDEX segments_unanswered ON segments (message_id) WHERE key LIKE '?%';
CREATE INDEX segments_unanswered_handset ON segments (handset) WHERE key LIKE '?%';

-- Receipts that settled no segment. Those without a message are the inbox: the submit_sm_resp with their id may still
-- arrive. Those with a message are part of its history.
CREATE TABLE receipts (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    received_at timestamptz NOT NULL DEFAULT now(),
    handset     integer,              -- last eight digits of number; NULL: it has fewer
    carrier     text COLLATE "C"        NOT NULL,
    link        text        NOT NULL,
    key         text COLLATE "C"        NOT NULL, -- as in segments
    carrier_id  text COLLATE "C"        NOT NULL,
    number      text COLLATE "C"        NOT NULL, -- of the handset, as the carrier wrote it
    state       text COLLATE "C"        NOT NULL,
    status      smallint,             -- meaning of state: 1 sent, 2 failed, NULL not final
    error       text        NOT NULL,
    message_id  bigint,
    outcome     text        NOT NULL CHECK (outcome IN ('unmatched', 'duplicate', 'contradiction', 'intermediate')),
    reference   integer               -- user_message_reference: finds a segment whose submit_sm_resp never came
);

-- Two SMSCs of a carrier may use the same ids, and one id may equal another in hexadecimal: only number and carrier_id
-- together identify a repeated receipt.
CREATE UNIQUE INDEX receipts_inbox ON receipts (key, carrier, state, number, carrier_id) WHERE message_id IS NULL;
CREATE INDEX receipts_message ON receipts (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX receipts_reference ON receipts (reference, carrier) WHERE message_id IS NULL AND reference IS NOT NULL;
CREATE INDEX receipts_age ON receipts (received_at);
