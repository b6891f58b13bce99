-- A schema of an earlier build has the table under its old name.
ALTER TABLE IF EXISTS holds RENAME TO suspensions;
ALTER INDEX IF EXISTS holds_pkey RENAME TO suspensions_pkey;
