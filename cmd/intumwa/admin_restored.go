package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/billing/orders"
	"intumwa/dispatcher/core"
	"intumwa/dispatcher/setup"
	"intumwa/internal/postgres"
)

type adminRestoredCmd struct {
	Ahead   int64   `help:"By how many ids; 0: 5,000 for each second since the newest message, and 10 million at least." placeholder:"N"`
	Pending string  `help:"Messages that waited for a carrier when the backup was made: hold them until you have decided (admin unanswered), or send them, also those that carriers have got since." enum:"hold,send" default:"hold"`
	Stopped stopped `help:"When the gateway of the backup ended: messages that were due later wait as before. Now, when not given or without a time." placeholder:"T"`
}

// stopped is an instant whose flag may come without a value: now.
type stopped struct{ instant }

// Decode implements kong.MapperValue.
func (s *stopped) Decode(ctx *kong.DecodeContext) error {
	if next := ctx.Scan.Peek(); next.IsEOL() || next.InferredType() == kong.FlagToken {
		return nil
	}
	return s.UnmarshalText([]byte(ctx.Scan.Pop().String()))
}

// do prepares a restored database for use: it reuses no message_id or webhook-id that a customer has seen, and it holds
// messages that a carrier may have got after the backup.
func (c *adminRestoredCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Ahead < 0 {
		return nil, errors.New("--ahead must not be negative: ids only grow")
	}
	if err := noDispatcher(ctx, o.pool); err != nil {
		return nil, err
	}
	last, next, err := o.by(nil).SkipIDs(ctx, c.Ahead)
	if err != nil {
		return nil, err
	}
	var held int64 // messages that carriers may already have
	if c.Pending == "hold" {
		if held, err = o.holdPending(ctx, c.Stopped.moment()); err != nil {
			return nil, fmt.Errorf("%w; %d messages are held: repeat the command", err, held)
		}
	}
	numbers, err := o.orders().Last(ctx)
	if err != nil {
		return nil, err
	}
	names := object{} // the last of each kind that has been used
	for _, kind := range orders.Kinds {
		if n := numbers[kind]; n > 0 {
			names = append(names, pair{string(kind), orders.Name(kind, n)})
		}
	}
	if len(names) > 0 {
		_, _ = fmt.Fprintln(o.stderr, "intumwa: before the next payment is recorded: if the tax office or a customer has a "+
			"later invoice than the last ones here, run admin invoice skip --last NUMBER --reason T for each kind")
	}
	return object{{"last_message_id", last}, {"next_message_id", next}, {"held", held},
		{"last_invoices", optional{names}}}, nil
}

// killedAlive is the longest that a killed dispatcher appears alive, with a margin.
const killedAlive = 6 * time.Second

// noDispatcher returns an error if a dispatcher is alive for longer than killedAlive.
func noDispatcher(ctx context.Context, pool *pgxpool.Pool) error {
	for end := time.Now().Add(killedAlive); ; {
		n, err := core.Alive(ctx, pool)
		switch {
		case err != nil || n == 0:
			return err
		case time.Now().After(end):
			return fmt.Errorf("%d dispatchers work on this database: stop them first", n)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// holdPending holds the messages that were due before the stop and records their number.
func (o *operator) holdPending(ctx context.Context, stopped time.Time) (n int64, err error) {
	pool, err := o.busyPool(ctx)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	if stopped.IsZero() { // the clock that decides what is due
		if err := pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&stopped); err != nil {
			return 0, fmt.Errorf("asking the database for the time: %w", err)
		}
	}
	var carriers []setup.Carrier
	for i := range o.config.Carriers {
		carriers = append(carriers, carrierOf(&o.config.Carriers[i]))
	}
	return o.by(pool).HoldPending(ctx, carriers, refunds[o.config.Billing.Refund], stopped)
}

// manyPatience bounds a statement over many messages, which takes longer than the gateway's own may.
const manyPatience = 10 * time.Minute

// busyPool is for statements over many messages.
func (o *operator) busyPool(ctx context.Context) (*pgxpool.Pool, error) {
	return o.open(ctx, postgres.Options{MaxConns: 2, BatchUpdates: true, StatementTimeout: manyPatience})
}
