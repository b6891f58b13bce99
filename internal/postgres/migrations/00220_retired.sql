-- Carriers that have closed, by an operator's act: the one record of it. Their numbers and what waits for them go to
-- to_carrier, or to the carrier that it goes to if it is retired too.
CREATE TABLE retired_carriers (
    carrier    text COLLATE "C"        PRIMARY KEY,
    to_carrier text        CHECK (to_carrier <> carrier), -- NULL: to none. New messages are refused; what waits fails and is refunded
    at         timestamptz NOT NULL DEFAULT now()
);
CREATE TRIGGER retired_carriers_notice AFTER INSERT OR UPDATE OR DELETE ON retired_carriers
    FOR EACH ROW EXECUTE FUNCTION notice('carrier', 'carrier');

-- Finds what is scheduled for a retired carrier.
CREATE INDEX scheduled_carrier ON scheduled (carrier, message_id);
