package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// age makes about n messages of before: some are sent, and with the gateway
// stopped the rows of all tables that have one a message are copied, each copy
// with keys of its own. Which columns are keys is read from the rows and the
// indexes, so it goes with any schema; the copies have the time of the first.
func (w *world) age(ctx context.Context, n int) error {
	if _, err := w.bulk(bulkSends)(ctx); err != nil {
		return err
	}
	if err := w.calm(ctx); err != nil {
		return err
	}
	w.gateway.Stop()
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SET synchronous_commit = off"); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, `SELECT oid::regclass::text FROM pg_class
		WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace ORDER BY 1`)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	const sent = warming + bulkSends
	for _, table := range tables {
		if err := multiply(ctx, conn, table, sent, n/sent-1); err != nil {
			return fmt.Errorf("copying %s: %w", table, err)
		}
	}
	if err := w.tidy(ctx); err != nil {
		return err
	}
	if err := w.start(ctx); err != nil {
		return err
	}
	if _, err := w.singles(warming)(ctx); err != nil {
		return fmt.Errorf("warming up again: %w", err)
	}
	return w.rest(ctx)
}

// multiply adds the given number of copies of each row to a table that has at
// least one for every second message; it leaves others as they are.
func multiply(ctx context.Context, conn *pgx.Conn, table string, messages, copies int) error {
	var have int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+table).Scan(&have); err != nil {
		return err
	}
	if have < messages/2 {
		return nil
	}
	rows, err := conn.Query(ctx, `SELECT quote_ident(attname), atttypid::regtype::text,
			EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND attnum = ANY(indkey)),
			coalesce(pg_get_serial_sequence($1, attname), '')
		FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`, table)
	if err != nil {
		return err
	}
	type column struct {
		Name, Type string
		Indexed    bool
		Sequence   string
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil {
		return err
	}
	var names, values []string
	for _, c := range columns {
		var distinct int
		if err := conn.QueryRow(ctx, fmt.Sprintf("SELECT count(DISTINCT %s) FROM %s", c.Name, table)).Scan(&distinct); err != nil {
			return err
		}
		value := c.Name
		if distinct > messages/2 {
			switch c.Type {
			case "bigint", "integer":
				// Powers of two keep n and n * 8 + event together.
				var step int64
				if err := conn.QueryRow(ctx, fmt.Sprintf("SELECT (2 ^ ceil(log(2, max(%[1]s) - min(%[1]s) + 1)))::bigint FROM %[2]s", c.Name, table)).Scan(&step); err != nil {
					return err
				}
				value = fmt.Sprintf("%s + $1::bigint * %d", c.Name, step)
			case "uuid": // the first 48 bits of a ULID are its time
				value = fmt.Sprintf("(left(replace(%[1]s::text, '-', ''), 12) || left(md5(%[1]s::text || $1::bigint), 20))::uuid", c.Name)
			case "text":
				if c.Indexed {
					value = fmt.Sprintf("%s || 'x' || $1::bigint", c.Name)
				}
			}
		}
		names, values = append(names, c.Name), append(values, value)
	}
	if _, err := conn.Exec(ctx, "CREATE TEMPORARY TABLE first AS TABLE "+table); err != nil {
		return err
	}
	insert := fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM first WHERE $1::bigint > 0",
		table, strings.Join(names, ", "), strings.Join(values, ", "))
	for i := range copies {
		if _, err := conn.Exec(ctx, insert, i+1); err != nil {
			return err
		}
	}
	for _, c := range columns {
		if c.Sequence == "" {
			continue
		}
		if _, err := conn.Exec(ctx, fmt.Sprintf("SELECT setval('%s', max(%s)) FROM %s", c.Sequence, c.Name, table)); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, "DROP TABLE first")
	return err
}

// rest waits until PostgreSQL uses less than a tenth of a core, at most 20 s:
// jobs of the gateway may have found a lot to do.
func (w *world) rest(ctx context.Context) error {
	before, err := familyTime(w.postgresPID)
	if err != nil {
		return err
	}
	for range 20 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		now, err := familyTime(w.postgresPID)
		if err != nil {
			return err
		}
		if now-before < 0.1 {
			break
		}
		before = now
	}
	return nil
}
