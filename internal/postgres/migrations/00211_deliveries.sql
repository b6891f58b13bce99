-- Of an MO: what tells a carrier's repetition from a person who answers the same twice.
ALTER TABLE inbound
    ADD COLUMN answered_at timestamptz, -- when its response was written; NULL: not, or not yet
    ADD COLUMN bound_at    timestamptz, -- when the session was bound over which it came
    ADD COLUMN reference   integer;     -- user_message_reference

-- Only the text of an unmatched receipt says that it is one: it settles a segment only with both the id and the handset.
ALTER TABLE receipts ADD COLUMN checked boolean NOT NULL DEFAULT false;
