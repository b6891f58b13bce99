-- +goose Up

-- Old messages leave from the far end, in the order of their ids. What has left
-- is kept as sums, by which the audit proves it against the ledger, which stays.
CREATE TABLE purged (
    company_id bigint  PRIMARY KEY,
    requests   bigint  NOT NULL, -- that were charged: single messages and batches
    messages   bigint  NOT NULL, -- of these requests
    segments   bigint  NOT NULL, -- credits
    mark       numeric NOT NULL  -- sum of the requests' purge_mark
);

-- What a request that has left adds to its company's mark. The sum over the
-- ledger's rows that have no messages is the same only if they are the same
-- requests, and each of the same price.
CREATE FUNCTION purge_mark(ref uuid, segments bigint) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ('x' || left(encode(sha256(convert_to(ref || ' ' || segments, 'UTF8')), 'hex'), 15))::bit(60)::bigint::numeric
$$;

-- Messages that were old enough when the purge came by, and not final, or of a
-- batch that was not: it comes again for them.
CREATE TABLE unpurged (
    kind       text   NOT NULL CHECK (kind IN ('messages', 'bodies')),
    message_id bigint NOT NULL,
    PRIMARY KEY (kind, message_id)
);
