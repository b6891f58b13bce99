package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// sandboxDay is how long a message of the sandbox counts as one of its user's.
const sandboxDay = 24 * time.Hour

// SandboxUsed returns how many messages of the sandbox each of users has had within a
// day; who had none is not in the answer.
func (s *Store) SandboxUsed(ctx context.Context, tx pgx.Tx, users []int64) (map[int64]int, error) {
	rows, err := tx.Query(ctx, `SELECT user_id, count(*) FROM sandbox
		WHERE user_id = ANY($1) AND created_at > now() - $2::interval GROUP BY user_id`, users, sandboxDay)
	if err != nil {
		return nil, fmt.Errorf("counting messages of the sandbox: %w", err)
	}
	used := make(map[int64]int, len(users))
	var user int64
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&user, &n}, func() error { used[user] = n; return nil }); err != nil {
		return nil, fmt.Errorf("counting messages of the sandbox: %w", err)
	}
	return used, nil
}

// InsertSandbox records messages to numbers of the sandbox, which are to become what
// their numbers' fates say, within the caller's transaction. It returns their ids in
// the order given, which are set when the transaction is committed, at the latest.
// They are in no outbox: no dispatcher ever sees them.
func (s *Store) InsertSandbox(ctx context.Context, tx pgx.Tx, messages []*Message) ([]int64, error) {
	n := len(messages)
	var (
		ids                      = make([]int64, n)
		ulids                    = make([]pgtype.UUID, n)
		companies, users         = make([]int64, n), make([]int64, n)
		numbers, senders, bodies = make([]string, n), make([]string, n), make([]string, n)
		encodings, segments      = make([]int16, n), make([]int16, n)
		after                    = make([]float64, n)
		status                   = make([]int16, n)
		reasons                  = make([]string, n)
		references               = make([]*string, n)
		sends, expires           = make([]*time.Time, n), make([]*time.Time, n)
	)
	for i, m := range messages {
		fate, ok := sms.SandboxFateOf(m.Number)
		if !ok {
			return nil, fmt.Errorf("%s is no number of the sandbox", m.Number.Masked())
		}
		ulids[i], companies[i], users[i] = uuid(m.ULID), m.CompanyID, m.UserID
		numbers[i], senders[i], bodies[i] = string(m.Number), m.Sender, m.Body
		encodings[i], segments[i] = int16(m.Encoding), int16(m.Segments)
		after[i], status[i], reasons[i] = fate.After.Seconds(), int16(fate.Status), fate.Reason
		sends[i], expires[i] = orNull(m.SendAt), orNull(m.ExpireAt)
		if m.Reference != "" {
			references[i] = &m.Reference
		}
	}
	b := &pgx.Batch{}
	b.Queue(`
		WITH input AS MATERIALIZED (
			SELECT nextval('messages_id_seq') AS id, u.*
			FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::smallint[],
				$9::float8[], $10::smallint[], $11::text[], $13::text[], $14::timestamptz[], $15::timestamptz[])
				WITH ORDINALITY AS u(ulid, company, usr, number, sender, body, encoding, segments, after, status, reason, reference, send_at, expire_at, n)
		), message AS (
			INSERT INTO messages (id, ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, carrier, client_reference, send_at, expire_at)
			OVERRIDING SYSTEM VALUE
			SELECT id, ulid, company, usr, number, sender, body, encoding, segments, true, $12, reference, send_at, expire_at FROM input
		), fate AS (
			INSERT INTO sandbox (message_id, user_id, due_at, status, reason)
			SELECT id, usr, greatest(now(), send_at) + make_interval(secs => after), status, reason FROM input
		)
		SELECT id FROM input ORDER BY n`,
		ulids, companies, users, numbers, senders, bodies, encodings, segments, after, status, reasons, sms.SandboxCarrier,
		references, sends, expires).Query(collectIDs(ids))
	if err := postgres.Later(ctx, tx, fmt.Sprintf("inserting %d messages of the sandbox", n), b); err != nil {
		return nil, err
	}
	return ids, nil
}

// SandboxDue takes up to limit messages of the sandbox whose time has come and returns
// their verdicts, for Finish in the same transaction.
func (s *Store) SandboxDue(ctx context.Context, tx pgx.Tx, limit int) ([]Final, error) {
	rows, err := tx.Query(ctx, `
		WITH due AS (
			SELECT message_id FROM sandbox WHERE NOT settled AND due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED
		)
		UPDATE sandbox s SET settled = true FROM due WHERE s.message_id = due.message_id
		RETURNING s.message_id, s.status, now(), s.reason`, limit)
	if err != nil {
		return nil, fmt.Errorf("taking messages of the sandbox: %w", err)
	}
	finals, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Final, err error) {
		err = row.Scan(&f.MessageID, &f.Status, &f.At, &f.Reason)
		return f, err
	})
	if err != nil {
		return nil, fmt.Errorf("taking messages of the sandbox: %w", err)
	}
	return finals, nil
}

// ForgetSandbox forgets the fates of messages that are settled and count no more. It
// answers how many, up to 20,000 a call.
func (s *Store) ForgetSandbox(ctx context.Context) (int64, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM sandbox WHERE message_id IN (
		SELECT message_id FROM sandbox WHERE settled AND created_at < now() - $1::interval
		ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, sandboxDay, forgetLimit)
	if err != nil {
		return 0, fmt.Errorf("forgetting messages of the sandbox: %w", err)
	}
	return tag.RowsAffected(), nil
}
