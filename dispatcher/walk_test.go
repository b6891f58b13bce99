package dispatcher

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/recovery"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/sms"
)

// wait makes n messages wait for a carrier in the batch lane and returns the ids of
// the first and the last. They have only their rows in the outbox.
func (b *bench) wait(carrier string, n int) (first, last int64) {
	b.Helper()
	if err := b.pool.QueryRow(b.Context(), `WITH waiting AS (
			INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at)
			SELECT nextval('messages_id_seq'), 1, $1, $2, now() + interval '1 day' FROM generate_series(1, $3)
				RETURNING message_id
		)
		SELECT min(message_id), max(message_id) FROM waiting`, carrier, messages.LaneBatch, n).Scan(
		&first, &last); err != nil {
		b.Fatal(err)
	}
	return first, last
}

func (b *bench) walk() {
	b.Helper()
	if err := b.d.recovery.WalkOutbox(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// depth is the reported backlog of a carrier.
func (b *bench) depth(carrier string) (n int64) {
	b.Helper()
	backlogs, err := b.d.core.Store.Outbox.Backlogs(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, of := range backlogs {
		if of.Carrier == carrier {
			n += of.Messages
		}
	}
	return n
}

// TestWalkComesRound: rows beyond the first stretch are reached in turn; a short lane
// is read whole each time.
func TestWalkComesRound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.wait("lumitel", 2*outbox.WalkRows)
	far := b.begun(1)
	b.exec(`UPDATE outbox SET claimed_by = NULL, expires_at = now() WHERE message_id = $1`, far.Msg.ID)
	b.exec(`UPDATE outbox SET lane = $2 WHERE message_id = $1`, far.Msg.ID, messages.LaneBatch)
	near := func() *core.InFlight {
		m := b.begun(1)
		b.exec(`UPDATE outbox SET claimed_by = NULL, expires_at = now() WHERE message_id = $1`, m.Msg.ID)
		return m
	}
	expired := func(m *core.InFlight) bool {
		t.Helper()
		status, _ := b.status(m.Msg.ID)
		return status == sms.Failed
	}
	for round, want := range []struct {
		far   bool
		depth int64
	}{{false, outbox.WalkRows}, {false, 2 * outbox.WalkRows}, {true, 2*outbox.WalkRows + 1},
		{true, 2*outbox.WalkRows + 1}} {
		single := near()
		b.walk()
		if !expired(single) || expired(far) != want.far {
			t.Errorf("round %d: near %v, far %v", round, expired(single), expired(far))
		}
		if got := b.depth("lumitel"); got != want.depth && got != want.depth+1 { // plus the single
			t.Errorf("round %d: %d are shown to wait, want %d", round, got, want.depth)
		}
	}
}

// TestWalkTakesOver: until its first pass ends, a new walk reports at least the count of the previous walk.
func TestWalkTakesOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.wait("lumitel", outbox.WalkRows+1)
	b.walk()
	b.walk()
	b.d.recovery.Walk = recovery.NewOutboxWalk() // another process
	for round := range 2 {
		b.walk()
		if got := b.depth("lumitel"); got != outbox.WalkRows+1 {
			t.Errorf("round %d: %d are shown to wait", round, got)
		}
		b.exec(`DELETE FROM outbox WHERE message_id = (SELECT max(message_id) FROM outbox)`)
		b.exec(`INSERT INTO outbox (message_id, company_id, carrier, lane, expires_at) VALUES (nextval('messages_id_seq'), 1,
			'lumitel', 1, now() + interval '1 day')`)
	}
	b.exec(`DELETE FROM outbox WHERE message_id > (SELECT min(message_id) FROM outbox)`)
	b.walk()
	if got := b.depth("lumitel"); got != 1 {
		t.Errorf("%d are shown to wait of one", got)
	}
}

// TestWalkMeetsTheDead: the walk frees a dead dispatcher's claim that was made after
// free_claims ran.
func TestWalkMeetsTheDead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	m := b.begun(1)
	b.exec(`INSERT INTO dispatchers (id, name) VALUES (7, 'me')`)
	if err := b.tasks(); err != nil { // searches for the dead, as every process does at its start
		t.Fatal(err)
	}
	b.exec(`UPDATE outbox SET claimed_by = 8 WHERE message_id = $1`, m.Msg.ID)
	for range 2 { // finds it, frees it
		if err := b.tasks(); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.count(`SELECT count(*) FROM outbox WHERE claimed_by IS NULL`); n != 1 {
		t.Error("it is claimed still")
	}
}

// TestWhatARoundReads: the periodic readers of the outbox together read no more rows
// when the backlog beyond their reach grows. While a snapshot is held, they read
// almost no deleted rows a second time.
func TestWhatARoundReads(t *testing.T) {
	b := newBench(t)
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} { // pushing again is not measured
		b.d.health.Failed(core.LaneKey{Carrier: "lumitel", Lane: lane}, errors.New("away"))
	}
	again := time.Time{}
	rows := func(what string) (read int) {
		t.Helper()
		b.d.recovery.Walk.AskAgain = again
		b.d.recovery.Deaths.Unfreed.Store(false) // the cost of a death is not measured
		for _, l := range b.d.recovery.Walk.Lanes {
			l.After = 0
		}
		before := b.outboxRowsRead()
		const rounds = 3
		for range rounds {
			if err := b.tasks(); err != nil {
				t.Fatal(err)
			}
			if _, err := b.d.core.Store.Outbox.Backlogs(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		read = (b.outboxRowsRead() - before) / rounds
		t.Logf("FIGURE %-24s %d rows of the outbox a round", what, read)
		return read
	}
	rows("nothing")
	const enough = 3*outbox.WalkRows + 1000 // none of the three rounds comes to the end
	b.wait("lumitel", enough)
	b.wait("gone", enough)
	little := rows("122,000")
	b.wait("lumitel", enough)
	b.wait("gone", enough)
	b.exec(`ANALYZE outbox`)
	if much := rows("244,000"); much > little+little/20 {
		t.Errorf("%d rows a round with twice as much waiting, %d before", much, little)
	}

	snapshot, err := pgx.ConnectConfig(t.Context(), b.pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = snapshot.Close(context.WithoutCancel(t.Context())) }()
	for _, statement := range []string{`SET idle_in_transaction_session_timeout = 0`,
		`BEGIN ISOLATION LEVEL REPEATABLE READ`, `SELECT count(*) FROM links`} {
		if _, err := snapshot.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	b.exec(`DELETE FROM outbox`)
	again = time.Now().Add(time.Hour) // the query for carriers reads all rows, and rests by its duration
	rows("a look below the floor")
	for _, l := range b.d.recovery.Walk.Lanes {
		l.Floor.Down = again // the next one is not measured
	}
	if dead := rows("244,000 that are gone"); dead > 4*(recovery.Uncommitted+10) {
		t.Errorf("%d rows a round are read of those that are gone", dead)
	}
}

// outboxRowsRead is how many rows of the outbox, live or dead, the bench's statements
// have read so far.
func (b *bench) outboxRowsRead() int {
	b.Helper()
	b.pool.Reset() // each session reports its statistics when it ends
	const others = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
		AND backend_type = 'client backend'
		AND pid <> pg_backend_pid() AND state <> 'idle in transaction'`
	until(b, "the sessions end", func() bool { return b.count(others) == 0 })
	return b.count(`SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'outbox')
		+ (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'outbox')`)
}

func (b *bench) exec(statement string, args ...any) {
	b.Helper()
	testenv.Exec(b, b.pool, statement, args...)
}
