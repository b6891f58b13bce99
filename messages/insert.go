package messages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Insert records messages, their batches and where they wait (outbox; scheduled for later ones; sandbox, with the
// number's fate) in the caller's transaction. It returns the messages' ids (the message_id of rule api 2.3) in the
// given order, which are set at the latest when the transaction is committed (postgres.Pipeline). It runs one statement
// for any number of messages.
func (s *Store) Insert(ctx context.Context, tx pgx.Tx, messages []*Message) ([]int64, error) {
	batchIDs, err := insertBatches(ctx, tx, messages)
	if err != nil {
		return nil, err
	}
	concats, err := concatRefs(ctx, tx, messages)
	if err != nil {
		return nil, err
	}
	n := len(messages)
	var (
		ids                                = make([]int64, n)
		ulids                              = make([][16]byte, n)
		companies, users                   = make([]int64, n), make([]int64, n)
		batches                            = make([]*int64, n)
		numbers, senders, bodies, carriers = make([]string, n), make([]string, n), make([]string, n), make([]string, n)
		encodings, segments, lanes         = make([]int16, n), make([]int16, n), make([]int16, n)
		tests                              = make([]bool, n)
		validity                           = make([]float64, n)
	)
	for i, m := range messages {
		ulids[i] = m.ULID
		companies[i], users[i] = m.CompanyID, m.UserID
		numbers[i], senders[i], bodies[i], carriers[i] = string(m.Number), m.Sender, m.Body, m.Carrier
		encodings[i], segments[i], lanes[i] = int16(m.Encoding), int16(m.Segments), int16(m.Lane())
		if tests[i] = m.Test; m.Sandboxed() {
			tests[i], carriers[i] = true, sms.SandboxCarrier
		}
		validity[i] = m.Validity.Seconds()
		if m.Batch != nil {
			id := batchIDs[m.Batch.ULID]
			batches[i] = &id
		}
	}
	// The ids are drawn first, so that messages and outbox need no join, which would cost the square of n: the planner
	// is kept to nested loops.
	args := []any{ulids, companies, users, batches, numbers, senders, bodies, encodings, segments, concats, tests,
		carriers, lanes, validity}
	statement := insertPlain
	if more := moreOf(messages); more != nil {
		statement, args = insertMore, append(args, more...)
	}
	b := &pgx.Batch{}
	i, id := 0, int64(0)
	postgres.EachQueued(b.Queue(statement, args...), []any{&id}, func() error { ids[i], i = id, i+1; return nil })
	if err := postgres.Pipeline(ctx, tx, fmt.Sprintf("inserting %d messages", n), b); err != nil {
		return nil, err
	}
	return ids, nil
}

// rare reports whether it has a column that most messages lack.
func (m *Message) rare() bool {
	return m.Reference != "" || m.CostCenter != "" || m.Channel != API || m.timed() || m.Sandboxed() || m.Origin != nil ||
		m.Secret != nil
}

// moreOf returns the columns that most messages lack; nil when none of them has any.
func moreOf(messages []*Message) []any {
	if !slices.ContainsFunc(messages, (*Message).rare) {
		return nil
	}
	n := len(messages)
	references, sends, expires, later := make([]*string, n), make([]*time.Time, n), make([]*time.Time, n), make([]bool, n)
	after, status, reasons := make([]*float64, n), make([]int16, n), make([]string, n)
	accounts, binds, parts := make([]*int64, n), make([]*int64, n), make([]*int64, n)
	registered, urgent, classes := make([]*int16, n), make([]*bool, n), make([]*int16, n)
	channels, costCenters, secrets, echoes := make([]*int16, n), make([]*string, n), make([][]byte, n), make([][]byte, n)
	for i, m := range messages {
		secrets[i] = m.Secret
		if m.Reference != "" {
			references[i] = &m.Reference
		}
		if m.CostCenter != "" {
			costCenters[i] = &m.CostCenter
		}
		if m.Channel != API {
			channels[i] = new(int16(m.Channel))
		}
		sends[i], expires[i], later[i] = postgres.OrNull(m.SendAt), postgres.OrNull(m.ExpireAt), m.Scheduled
		if fate, ok := sms.SandboxFateOf(m.Number); ok {
			seconds := fate.After.Seconds()
			after[i], status[i], reasons[i] = &seconds, int16(fate.Status), fate.Reason
		}
		if o := m.Origin; o != nil {
			accounts[i], binds[i], urgent[i], echoes[i] = &o.Account, &o.Bind, &o.Urgent, o.Echo
			if o.Registered != 0 {
				registered[i] = new(int16(o.Registered))
			}
			if o.Class != nil {
				classes[i] = new(int16(*o.Class))
			}
			if o.Part != nil {
				parts[i] = new(partNumber(*o.Part))
			}
		}
	}
	return []any{references, sends, expires, later, after, status, reasons, accounts, binds, registered, urgent, classes,
		parts, channels, costCenters, secrets, echoes}
}

// partNumber is a part as the table has it.
func partNumber(p sms.Part) int64 {
	number := int64(p.Coding)<<32 | int64(p.Reference)<<16 | int64(p.Total)<<8 | int64(p.Number)
	if p.Wide {
		number |= widePart
	}
	return number
}

// widePart marks a part whose reference came in a UDH, with 16 bits.
const widePart = 1 << 40

// PartOf is the inverse of partNumber; nil for 0.
func PartOf(number int64) *sms.Part {
	if number == 0 {
		return nil
	}
	return &sms.Part{Reference: uint16(number >> 16), Total: uint8(number >> 8), Number: uint8(number),
		Wide: number&widePart != 0, Coding: sms.Coding(number >> 32)}
}

// The statements for messages without the rarer columns, and with them.
var insertPlain, insertMore = insertStatement(false), insertStatement(true)

// insertStatement inserts messages and the rows in which they wait; more includes the rarer columns.
func insertStatement(more bool) string {
	var arrays, columns, values, statements string
	expires, now := `now() + make_interval(secs => validity)`, ``
	if more {
		arrays = `, unnest($15::text[]) AS reference, unnest($16::timestamptz[]) AS send_at,
			unnest($17::timestamptz[]) AS expire_at,
			unnest($18::boolean[]) AS later, unnest($19::float8[]) AS fate_after, unnest($20::smallint[]) AS fate,
			unnest($21::text[]) AS fate_reason,
			unnest($22::bigint[]) AS smpp_key, unnest($23::bigint[]) AS smpp_bind, unnest($24::smallint[]) AS registered,
			unnest($25::boolean[]) AS urgent,
			unnest($26::smallint[]) AS message_class, unnest($27::bigint[]) AS part,
			unnest($28::smallint[]) AS channel, unnest($29::text[]) AS cost_center, unnest($30::bytea[]) AS secret,
			unnest($31::bytea[]) AS echo`
		const origin = `, smpp_key, smpp_bind, registered, urgent, message_class, part, channel, cost_center, secret, echo`
		columns, values = `, client_reference, send_at, expire_at`+origin, `, reference, send_at, expire_at`+origin
		expires = `coalesce(expire_at, greatest(now(), send_at) + make_interval(secs => validity))`
		now = ` WHERE NOT later AND fate_after IS NULL`
		statements = `, later AS (
			INSERT INTO scheduled (message_id, company_id, carrier, lane, due_at, expires_at)
			SELECT id, company, carrier, lane, send_at, ` + expires + ` FROM input WHERE later AND fate_after IS NULL
		), fate AS (
			INSERT INTO sandbox (message_id, user_id, due_at, status, reason)
			SELECT id, usr, greatest(now(), send_at) + make_interval(secs => fate_after), fate, fate_reason FROM input
				WHERE fate_after IS NOT NULL
		), deadline AS (
			INSERT INTO deadlines (message_id, expires_at, look_at)
			SELECT id, ` + expires + `, ` + expires + ` FROM input WHERE (send_at IS NOT NULL OR expire_at IS NOT NULL)
				AND fate_after IS NULL
		)`
	}
	return `
		WITH input AS MATERIALIZED (
			SELECT nextval('messages_id_seq') AS id, u.* FROM (SELECT unnest($1::uuid[]) AS ulid,
				unnest($2::bigint[]) AS company, unnest($3::bigint[]) AS usr,
				unnest($4::bigint[]) AS batch, unnest($5::text[]) AS number, unnest($6::text[]) AS sender,
				unnest($7::text[]) AS body,
				unnest($8::smallint[]) AS encoding, unnest($9::smallint[]) AS segments, unnest($10::smallint[]) AS concat,
				unnest($11::boolean[]) AS test,
				unnest($12::text[]) AS carrier, unnest($13::smallint[]) AS lane, unnest($14::float8[]) AS validity` + arrays + `) u
		), message AS (
			INSERT INTO messages (id, ulid, company_id, user_id, batch_id, phone_number, sender, body,
				encoding, segments, concat_ref, test, carrier` + columns + `)
			OVERRIDING SYSTEM VALUE
			SELECT id, ulid, company, usr, batch, number, sender, body,
				encoding, segments, concat, test, carrier` + values +
		` FROM input
		), waiting AS (
			INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at)
			SELECT id, company, carrier, lane, ` + expires + ` FROM input` + now + `
		)` + statements + `
		SELECT id FROM input ORDER BY id`
}

// concatRefs returns the next 8-bit reference of its sender and recipient for each message of several segments, nil for
// others. Two long messages to one handset share a reference only after 255 others between the same two.
func concatRefs(ctx context.Context, tx pgx.Tx, messages []*Message) ([]*int16, error) {
	type pair struct{ sender, number string }
	refs := make([]*int16, len(messages))
	of := map[pair][]int{} // indexes of messages
	for i, m := range messages {
		if m.concatenated() {
			p := pair{m.Sender, string(m.Number)}
			of[p] = append(of[p], i)
		}
	}
	if len(of) == 0 {
		return refs, nil
	}
	// One order in all transactions prevents deadlocks.
	pairs := slices.SortedFunc(maps.Keys(of), func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.sender, b.sender), cmp.Compare(a.number, b.number))
	})
	senders, numbers, counts := make([]string, len(pairs)), make([]string, len(pairs)), make([]int32, len(pairs))
	for i, p := range pairs {
		senders[i], numbers[i], counts[i] = p.sender, p.number, int32(len(of[p]))
	}
	var p pair
	var last int
	return refs, postgres.Each(ctx, tx, "taking concatenation references", []any{&p.sender, &p.number, &last},
		func() error {
			for n, i := range of[p] {
				ref := int16(uint8(last - len(of[p]) + 1 + n))
				refs[i] = &ref
			}
			return nil
		}, `
		INSERT INTO concat_refs AS c (sender, phone_number, last)
		SELECT s, p, n % 256 FROM unnest($1::text[], $2::text[], $3::int[]) u(s, p, n)
		ON CONFLICT (sender, phone_number) DO UPDATE SET last = (c.last + excluded.last) % 256, used_at = now()
		RETURNING sender, phone_number, last`, senders, numbers, counts)
}

// Known returns which of the ULIDs are recorded, as a message or as a batch, with the message's id (0: it is a batch).
// Use it after a COMMIT without an answer: what it returns can be told, because a failover cannot take it back
// ([postgres.Confirmed]). It waits until the database commits.
func (s *Store) Known(ctx context.Context, ulids []ulid.ULID) (map[ulid.ULID]int64, error) {
	args := make([][16]byte, len(ulids))
	for i, id := range ulids {
		args[i] = id
	}
	var known map[ulid.ULID]int64
	var name pgtype.UUID
	var id int64
	err := postgres.Confirmed(ctx, s.pool, func(tx pgx.Tx) error {
		known = make(map[ulid.ULID]int64, len(ulids))
		return postgres.Each(ctx, tx, "looking up ULIDs", []any{&name, &id},
			func() error { known[name.Bytes] = id; return nil },
			`SELECT ulid, id FROM messages WHERE ulid = ANY($1) UNION ALL SELECT ulid, 0 FROM batches WHERE ulid = ANY($1)`,
			args)
	})
	return known, err
}

// The most ids that a lost second may have used, and the least to skip: the number of ids between the backup's moment
// and the end is unknown.
const (
	skippedSecond = 5_000
	leastSkipped  = 10_000_000
)

// SkipIDs advances the next message's id in a restored database: customers have received the ids that were drawn after
// the backup's moment (message_id, and the webhook-id made of it), and drop repeated ones. ahead is by how much; 0 is
// 5,000 for each second since the newest message, and at least 10 million. It returns the last drawn id and the next
// one.
func SkipIDs(ctx context.Context, tx pgx.Tx, ahead int64) (last, next int64, err error) {
	var since float64 // seconds
	err = tx.QueryRow(ctx, `SELECT last_value, coalesce((SELECT extract(epoch FROM clock_timestamp() - created_at)::float8
		FROM messages ORDER BY id DESC LIMIT 1), 0)
		FROM messages_id_seq`).Scan(&last, &since)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the last message's id: %w", err)
	}
	if ahead == 0 {
		ahead = max(leastSkipped, int64(since)*skippedSecond)
	}
	if err := tx.QueryRow(ctx, `SELECT setval('messages_id_seq', $1)`, last+ahead).Scan(&next); err != nil {
		return 0, 0, fmt.Errorf("moving the next message's id: %w", err)
	}
	return last, next + 1, nil
}
