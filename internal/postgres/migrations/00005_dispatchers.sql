-- +goose Up

-- One row a running dispatcher. What a dead one had claimed is free again.
CREATE TABLE dispatchers (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text        NOT NULL, -- host name and process id
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
);

-- One row a configured link: who holds it, and how it is, for operators.
CREATE TABLE links (
    name       text        PRIMARY KEY,
    carrier    text        NOT NULL,
    owner      bigint,               -- dispatchers.id; NULL: nobody holds it
    paused     boolean     NOT NULL DEFAULT false,
    state      text        NOT NULL DEFAULT 'down',
    since      timestamptz NOT NULL DEFAULT now(),
    "window"   integer     NOT NULL DEFAULT 0,
    in_flight  integer     NOT NULL DEFAULT 0,
    tps        double precision NOT NULL DEFAULT 0,
    last_error text        NOT NULL DEFAULT '',
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
