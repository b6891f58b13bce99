// Package rerouting moves pending messages between carriers: when a carrier's links fail, when it is retired, when it
// refuses a message for good, and when an operator decides about what it may have. It changes no status.
package rerouting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Store has the moves of one database.
type Store struct {
	pool *pgxpool.Pool
}

// New returns the store of pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// Retired is a carrier that an operator has retired. Its links stay bound for receipts and submit nothing.
type Retired struct {
	Carrier string
	To      string // the carrier that takes its numbers and what waits for it; "": none does
	At      time.Time
}

// RetiredTo is an SQL value: what takes the numbers of the carrier in a column (” for no carrier), NULL if that is not
// retired.
func RetiredTo(column string) string {
	return `(SELECT coalesce(r.to_carrier, '') FROM retired_carriers r WHERE r.carrier = ` + column + `)`
}

const selectRetired = `SELECT carrier, coalesce(to_carrier, ''), at FROM retired_carriers ORDER BY carrier`

// Retirements lists the retired carriers by name.
func Retirements(ctx context.Context, db postgres.Querier) ([]Retired, error) {
	return postgres.All(ctx, db, "reading the retired carriers", pgx.RowToStructByPos[Retired], selectRetired)
}

// Successors returns for each retired carrier the one that takes its numbers now ("": none): see [sms.Successors].
func Successors(list []Retired) map[string]string {
	next := make(map[string]string, len(list))
	for _, r := range list {
		next[r.Carrier] = r.To
	}
	return sms.Successors(next)
}

// ErrRetired means that a carrier cannot take over because it is retired too.
var ErrRetired = errors.New("it is retired too")

// Retire records that a carrier is retired, and returns what was recorded before (nil: nothing). The error is
// ErrRetired if to, unless "", is retired too: so no circle comes up. Until the transaction ends, no other retires a
// carrier.
func Retire(ctx context.Context, tx pgx.Tx, carrier, to string) (was *Retired, err error) {
	list, err := lockRetired(ctx, tx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		switch list[i].Carrier {
		case carrier:
			was = &list[i]
		case to:
			return nil, fmt.Errorf("%s: %w", to, ErrRetired)
		}
	}
	if was != nil && was.To == to {
		return was, nil
	}
	if _, err := tx.Exec(ctx, `INSERT INTO retired_carriers AS r (carrier, to_carrier) VALUES ($1, nullif($2, ''))
		ON CONFLICT (carrier) DO UPDATE SET to_carrier = excluded.to_carrier`, carrier, to); err != nil {
		return nil, fmt.Errorf("retiring %s: %w", carrier, err)
	}
	return was, nil
}

// Reopen ends a carrier's retirement and returns it (nil: it was not retired). The messages that waited only for what
// the carrier may have are due again.
func Reopen(ctx context.Context, tx pgx.Tx, carrier string) (was *Retired, err error) {
	list, err := lockRetired(ctx, tx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Carrier == carrier {
			was = &list[i]
		}
	}
	if was == nil {
		return nil, nil
	}
	b := &pgx.Batch{}
	b.Queue(`DELETE FROM retired_carriers WHERE carrier = $1`, carrier)
	b.Queue(`WITH parked AS (SELECT message_id FROM outbox WHERE carrier = $1 AND claimed_by IS NULL
		AND due_at = expires_at FOR UPDATE SKIP LOCKED)
		UPDATE outbox o SET due_at = now(), pushed_at = NULL FROM parked WHERE o.message_id = parked.message_id`, carrier)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("ending the retirement of %s: %w", carrier, err)
	}
	return was, nil
}

// lockRetired keeps other transactions from retiring carriers, and lists the retired ones.
func lockRetired(ctx context.Context, tx pgx.Tx) ([]Retired, error) {
	if _, err := tx.Exec(ctx, `LOCK TABLE retired_carriers IN SHARE ROW EXCLUSIVE MODE`); err != nil {
		return nil, fmt.Errorf("locking the retired carriers: %w", err)
	}
	return Retirements(ctx, tx)
}
