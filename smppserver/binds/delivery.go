package binds

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
)

// Delivery is a receipt or an MO for a key's binds.
type Delivery struct {
	ID      int64
	Account int64
	Bind    int64 // that submitted the message; 0: an MO
	Tries   int   // refusals so far
	Number  string
	Address string // the message's sender; where an MO went to

	ULID        ulid.ULID // of the message
	MessageID   int64     // of the message
	Echo        []byte    // optional parameters of its submit_sm, which a receipt repeats, as on the wire
	Sent        *bool     // whether it was delivered; nil: an MO
	Reason      string    // why it failed
	SubmittedAt time.Time // when it was accepted from the customer

	At   time.Time // of the final state; when an MO arrived
	Body string    // of an MO
}

// Add stores deliveries in the transaction that causes them.
func Add(ctx context.Context, tx pgx.Tx, all []Delivery) error {
	if len(all) == 0 {
		return nil
	}
	n := len(all)
	accounts, bound := make([]int64, n), make([]*int64, n)
	numbers, addresses, reasons, bodies := make([]string, n), make([]string, n), make([]*string, n), make([]*string, n)
	ids, echoes := make([]*int64, n), make([][]byte, n)
	ulids, sent, submitted, at := make([]pgtype.UUID, n), make([]*bool, n), make([]*time.Time, n), make([]time.Time, n)
	for i := range all {
		d := &all[i]
		accounts[i], numbers[i], addresses[i], at[i], sent[i] = d.Account, d.Number, d.Address, d.At, d.Sent
		if d.Sent == nil {
			bodies[i] = &d.Body
			continue
		}
		ids[i], echoes[i] = &d.MessageID, d.Echo
		bound[i], reasons[i], submitted[i], ulids[i] = &d.Bind, &d.Reason, &d.SubmittedAt,
			pgtype.UUID{Bytes: d.ULID, Valid: true}
	}
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO smpp_deliveries (account, bind, phone_number, address, ulid, sent, reason, submitted_at, at, body,
		message_id, echo)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::uuid[], $6::boolean[], $7::text[],
			$8::timestamptz[], $9::timestamptz[], $10::text[], $11::bigint[], $12::bytea[])`,
		accounts, bound, numbers, addresses, ulids, sent, reasons, submitted, at, bodies, ids, echoes)
	return postgres.Pipeline(ctx, tx, fmt.Sprintf("storing %d deliveries for binds", n), b)
}

// Take takes due deliveries for a process: for each key at most as many as given, the oldest first. It leaves a receipt
// to the live bind that submitted its message if another process serves that one and it receives and has room. held are
// the deliveries that the process has; what it took before and does not have, because the answer of the database was
// lost, it takes again.
func (s *Store) Take(ctx context.Context, process string, room map[int64]int, held []int64) ([]Delivery, error) {
	accounts, limits := make([]int64, 0, len(room)), make([]int32, 0, len(room))
	for account, n := range room {
		accounts, limits = append(accounts, account), append(limits, int32(n))
	}
	return postgres.All(ctx, s.pool, "taking deliveries for binds", scanDelivery, `
		UPDATE smpp_deliveries d SET taken_by = $1
		FROM (SELECT f.id FROM unnest($2::bigint[], $3::int[]) a(account, room) CROSS JOIN LATERAL (
			SELECT w.id FROM smpp_deliveries w WHERE w.account = a.account AND w.due_at <= now() AND w.id <> ALL($4)
				AND (w.taken_by IS NULL OR w.taken_by = $1 OR NOT EXISTS (SELECT FROM smpp_binds b WHERE b.process = w.taken_by
				AND `+live+`))
				AND NOT EXISTS (SELECT FROM smpp_binds b WHERE b.id = w.bind AND b.process <> $1
					AND b.mode <> 'transmitter' AND b.unanswered < `+window+` AND `+live+`)
			ORDER BY w.due_at, w.id LIMIT a.room FOR UPDATE SKIP LOCKED) f) free
		WHERE d.id = free.id
		RETURNING `+deliveryColumns, process, accounts, limits, append([]int64{}, held...)) // NULL would be true for none
}

// window is how many deliveries a bind may leave unanswered (smpp.DefaultDeliverWindow): one that has as many has no
// room.
const window = "100"

const deliveryColumns = `d.id, d.account, coalesce(d.bind, 0), d.tries, d.phone_number, d.address, d.ulid, d.sent,
	coalesce(d.reason, ''),
	coalesce(d.submitted_at, d.at), d.at, coalesce(d.body, ''), coalesce(d.message_id, 0), d.echo`

func scanDelivery(row pgx.CollectableRow) (d Delivery, err error) {
	var id pgtype.UUID
	err = row.Scan(&d.ID, &d.Account, &d.Bind, &d.Tries, &d.Number, &d.Address, &id, &d.Sent, &d.Reason, &d.SubmittedAt,
		&d.At, &d.Body, &d.MessageID, &d.Echo)
	d.ULID = id.Bytes
	return d, err
}

// Outcome is what became of a delivery that a process had taken.
type Outcome struct {
	ID    int64
	Done  bool          // answered for good
	Again time.Duration // else it is due again after this, and with Tried the attempt counts
	Tried bool
}

// Settle ends takes. A row that another process has taken meanwhile is not affected. One that was given back is deleted
// if it is done: its answer was late.
func (s *Store) Settle(ctx context.Context, process string, all []Outcome) error {
	var done, again []int64
	var delays []float64
	var tried []bool
	for _, o := range all {
		if o.Done {
			done = append(done, o.ID)
			continue
		}
		again, delays, tried = append(again, o.ID), append(delays, o.Again.Seconds()), append(tried, o.Tried)
	}
	b := &pgx.Batch{}
	if done != nil {
		b.Queue(`DELETE FROM smpp_deliveries WHERE id = ANY($2) AND coalesce(taken_by, $1) = $1`, process, done)
	}
	if again != nil {
		b.Queue(`UPDATE smpp_deliveries d SET taken_by = NULL, due_at = greatest(d.due_at,
			now() + make_interval(secs => u.delay)),
				tries = least(d.tries + u.tried::int, 1000)
			FROM unnest($2::bigint[], $3::float8[], $4::boolean[]) u(id, delay, tried) WHERE d.id = u.id AND d.taken_by = $1`,
			process, again, delays, tried)
	}
	if b.Len() == 0 {
		return nil
	}
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("settling %d deliveries for binds: %w", len(all), err)
	}
	return nil
}

// Waiting counts the deliveries of each key, and says since when the oldest waits.
func (s *Store) Waiting(ctx context.Context) (map[int64]Queue, error) {
	return s.waiting(ctx, `$1::bigint[] IS NULL`, nil)
}

// WaitingFor is [Store.Waiting] for some keys.
func (s *Store) WaitingFor(ctx context.Context, keys []int64) (map[int64]Queue, error) {
	return s.waiting(ctx, `account = ANY($1)`, keys)
}

func (s *Store) waiting(ctx context.Context, condition string, keys []int64) (map[int64]Queue, error) {
	waiting := map[int64]Queue{}
	var of int64
	var q Queue
	return waiting, postgres.Each(ctx, s.pool, "counting deliveries for binds", []any{&of, &q.Number, &q.Oldest},
		func() error { waiting[of] = q; return nil },
		`SELECT account, count(*), min(created_at) FROM smpp_deliveries WHERE `+condition+` GROUP BY account`, keys)
}

// Queue is what waits for the binds of one key.
type Queue struct {
	Number int64
	Oldest time.Time
}

// Life is how long a delivery waits for its key's binds, and Most how many of one key wait.
const (
	Life = 72 * time.Hour
	Most = 100_000
)

// dropAtOnce is how many deliveries one call of Drop deletes of a key.
const dropAtOnce = 10_000

// Drop deletes deliveries that are older than life, and of each key those that are not among its latest most. It
// returns how many of each kind, up to some thousands; call it again while there are. It deletes by place and not by
// number: however many processes call it at once, the latest most stay.
func (s *Store) Drop(ctx context.Context, life time.Duration, most int64) (old, excess int64, err error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM smpp_deliveries WHERE id IN (SELECT id FROM smpp_deliveries
		WHERE created_at < now() - $1::interval ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, life, dropAtOnce)
	if err != nil {
		return 0, 0, fmt.Errorf("deleting old deliveries for binds: %w", err)
	}
	old = tag.RowsAffected()
	waiting, err := s.Waiting(ctx)
	if err != nil {
		return old, 0, err
	}
	for account, q := range waiting {
		if q.Number <= most {
			continue
		}
		tag, err := s.pool.Exec(ctx, `DELETE FROM smpp_deliveries WHERE id IN (SELECT id FROM smpp_deliveries
			WHERE account = $1 AND (due_at, id) <= (SELECT due_at, id FROM smpp_deliveries WHERE account = $1
			ORDER BY due_at DESC, id DESC OFFSET $2 LIMIT 1)
			ORDER BY due_at, id LIMIT $3 FOR UPDATE SKIP LOCKED)`, account, most, dropAtOnce)
		if err != nil {
			return old, excess, fmt.Errorf("deleting deliveries of key %d beyond %d: %w", account, most, err)
		}
		excess += tag.RowsAffected()
	}
	return old, excess, nil
}

// OfNumber returns what waits about a handset, under any of the forms of its address.
func OfNumber(ctx context.Context, db postgres.DB, forms []string) ([]Delivery, error) {
	return postgres.All(ctx, db, "reading deliveries about a number", scanDelivery,
		`SELECT `+deliveryColumns+` FROM smpp_deliveries d WHERE d.phone_number = ANY($1) ORDER BY d.id`, forms)
}

// Erase deletes what waits about a handset, under any of the forms of its address.
func Erase(ctx context.Context, db postgres.DB, forms []string) (int64, error) {
	tag, err := db.Exec(ctx, `DELETE FROM smpp_deliveries WHERE phone_number = ANY($1)`, forms)
	if err != nil {
		return 0, fmt.Errorf("erasing deliveries about a number: %w", err)
	}
	return tag.RowsAffected(), nil
}
