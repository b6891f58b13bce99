-- One row per running process with the role dispatcher. Others remove the row of a process that does not renew it,
-- which frees its claims.
CREATE TABLE dispatchers (
    id         bigint      PRIMARY KEY,            -- a random number, so that no failover issues it twice
    name       text        NOT NULL, -- host name and process id
    seen_at    timestamptz NOT NULL DEFAULT now(), -- last renewal
    links      text[]      NOT NULL DEFAULT '{}',  -- the links that it is configured with
    given_up   text[]      NOT NULL DEFAULT '{}'   -- links that it leaves to others, because it could not bind them
);

-- Exclusive jobs, one dispatcher each: 'recovery', 'housekeeping', and 'link ' with the link's name. A lease ends with its owner's row.
-- The owner's id is its epoch: a process that was removed gets a new id, and its old one changes nothing.
CREATE TABLE leases (
    name   text COLLATE "C"   PRIMARY KEY,
    holder bigint NOT NULL REFERENCES dispatchers ON DELETE CASCADE
);

-- One row per configured link: its state, for operators and for the next owner.
CREATE TABLE links (
    name       text COLLATE "C"        PRIMARY KEY,
    carrier    text        NOT NULL,
    paused     boolean     NOT NULL DEFAULT false,
    state      text        NOT NULL DEFAULT 'down',
    since      timestamptz NOT NULL DEFAULT now(), -- of state
    broken     boolean     NOT NULL DEFAULT false, -- bound, and the carrier accepts nothing
    last_error text        NOT NULL DEFAULT '',
    "window"   integer     NOT NULL DEFAULT 0,
    in_flight  integer     NOT NULL DEFAULT 0,
    overdue    integer     NOT NULL DEFAULT 0, -- in flight for longer than the response timeout
    tps        double precision NOT NULL DEFAULT 0,
    accepted   integer     NOT NULL DEFAULT 0, -- submit_sm that the carrier accepted in the last minute
    throttled  integer     NOT NULL DEFAULT 0, -- submit_sm that it refused as too fast in the last minute
    served_at  timestamptz NOT NULL DEFAULT now(), -- when it last could carry messages
    bound_by   bigint,                             -- dispatchers.id that last had it bound
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- The owner writes the other columns every second.
CREATE TRIGGER links_notice AFTER UPDATE OF paused ON links
    FOR EACH ROW WHEN (OLD.paused IS DISTINCT FROM NEW.paused) EXECUTE FUNCTION notice('link', 'name');
