-- Each process caches some rows briefly. A trigger on each cached table calls this function: a change by a page, a
-- command or psql drops the row from every process's cache at its commit. Arguments: the subject and the column of its
-- key.
CREATE FUNCTION notice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM pg_notify('intumwa', TG_ARGV[0] || ' ' || left(to_jsonb(OLD) ->> TG_ARGV[1], 1000));
    END IF;
    IF TG_OP <> 'DELETE' THEN -- PostgreSQL sends the same text once in a transaction
        PERFORM pg_notify('intumwa', TG_ARGV[0] || ' ' || left(to_jsonb(NEW) ->> TG_ARGV[1], 1000));
    END IF;
    RETURN NULL;
END
$$;
-- A trigger on each insert-only table calls this function before a statement that would change rows.
CREATE FUNCTION insert_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is insert only: correct it with a new row', TG_TABLE_NAME;
END
$$;
