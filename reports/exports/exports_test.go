package exports

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/messages/lookup"
	"intumwa/texts"
)

// world is a database in which company 1 has messages.
type world struct {
	*Exports

	t    *testing.T
	pool *pgxpool.Pool
}

func newWorld(t *testing.T, texts time.Duration) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, pool: testenv.Pool(t)}
	w.Exports = w.process(texts)
	return w
}

// process returns the exports of another process.
func (w *world) process(texts time.Duration) *Exports {
	w.t.Helper()
	e, err := New(w.pool, texts, slog.New(slog.NewTextHandler(w.t.Output(), nil)))
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	testenv.Exec(w.t, w.pool, statement, args...)
}

// fill adds messages of March 2026 to company 1.
func (w *world) fill(messages int) {
	w.t.Helper()
	w.exec(`insert into messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test,
		created_at, carrier, status, sent_at)
		select gen_random_uuid(), 1, 1, '+257790' || lpad(n::text, 5, '0'), 'ACME', 'text ' || n, 0, 1, false,
			timestamptz '2026-03-01 00:00+02' + n * interval '1 second', 'leo', 1, '2026-03-02'
			from generate_series(0, $1 - 1) n`, messages)
}

var march = time.Date(2026, 3, 1, 0, 0, 0, 0, texts.Bujumbura)

func (w *world) ask(r Request) error {
	w.t.Helper()
	r.Company, r.Month, r.Language = 1, march, "en"
	return pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error { return Ask(w.t.Context(), tx, r) })
}

// take continues the export that is due, for one turn.
func (w *world) take() bool {
	w.t.Helper()
	found, err := w.WriteNext(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) listed(operators bool) []Export {
	w.t.Helper()
	list, err := w.List(w.t.Context(), 1, operators)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// content returns the newest file.
func (w *world) content(operators bool) []byte {
	w.t.Helper()
	x, err := w.Get(w.t.Context(), 1, operators, w.listed(operators)[0].ID)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := io.ReadAll(w.open(x))
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

func (w *world) open(x Export) io.ReadSeeker {
	return w.Open(w.t.Context(), x, func(read func() error) error { return read() })
}

// streamed returns what the command prints.
func (w *world) streamed(r Request) []byte {
	w.t.Helper()
	var out bytes.Buffer
	r.Company, r.Month, r.Language = 1, march, "en"
	if _, err := w.Stream(w.t.Context(), &out, r); err != nil {
		w.t.Fatal(err)
	}
	return out.Bytes()
}

func (w *world) rows(text []byte, comma rune) [][]string {
	w.t.Helper()
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte(texts.CSVMark))))
	r.Comma = comma
	rows, err := r.ReadAll()
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// TestColumns: the messages of the month in Burundi, the oldest first, each with what its carrier recorded and what it
// cost after its refund.
func TestColumns(t *testing.T) {
	w := newWorld(t, 0)
	w.exec(`insert into balances (company_id, credits) values (1, 100)`)
	w.exec(`insert into batches (id, ulid, company_id, user_id, kind, sender, recipients_count,
		item_count) overriding system value values (7, '01900000-0000-7000-8000-000000000007', 1, 1, 'bulk', 'ACME', 1, 1)`)
	w.exec(`insert into messages (id, ulid, company_id, user_id, batch_id, phone_number, sender, body, encoding, segments,
		test, created_at, carrier, status, sent_at, failed_at, failure_reason, client_reference, cost_center)
		overriding system value values
		(1, '01900000-0000-7000-8000-000000000001', 1, 1, null, '+25779000001', 'ACME', 'before', 0, 1, false,
		'2026-02-28 23:59:59+02', 'leo', 1, now(), null, null, null, null),
		(2, '01900000-0000-7000-8000-000000000002', 1, 1, 7, '+25779000002', 'ACME', '=1+1', 1, 2, false,
		'2026-03-01 00:00:00+02', 'leo', 1, '2026-03-01 10:00:05+02', null, null, '-ref', '@bank'),
		(3, '01900000-0000-7000-8000-000000000003', 2, 1, null, '+25779000003', 'OTHER', 'another company', 0, 1, false,
		'2026-03-02 00:00:00+02', 'leo', 1, now(), null, null, null, null),
		(4, '01900000-0000-7000-8000-000000000004', 1, 1, null, '+25779000004', 'ACME', 'expired', 0, 3, false,
		'2026-03-02 10:00:00+02', 'leo', 2, null, '2026-03-03 10:00:00+02', 'expired', null, null),
		(5, '01900000-0000-7000-8000-000000000005', 1, 1, null, '+25779000005', 'INTUMWATEST', 'test', 0, 1, true,
		'2026-03-31 23:59:59+02', 'leo', 0, null, null, null, null, null),
		(6, '01900000-0000-7000-8000-000000000006', 1, 1, null, '+25779000006', 'ACME', 'after', 0, 1, false,
		'2026-04-01 00:00:00+02', 'leo', 1, now(), null, null, null, null)`)
	w.exec(`insert into segments (message_id, segment, total, carrier, link, key, carrier_id, submitted_at) values
		(2, 1, 2, 'onatel', 'onatel-1', '99', '99', '2026-03-01 09:00+02'), (2, 1, 2, 'leo', 'leo-1', 'a1', 'A1',
		'2026-03-01 10:00:00+02'), (2, 2, 2, 'leo', 'leo-2', 'a2', 'A2', '2026-03-01 10:00:01+02'),
		(4, 1, 3, 'leo', 'leo-1', '?5', null, '2026-03-02 10:00:02+02')`)
	w.exec(`insert into ledger (company_id, amount, balance_after, ref, kind)
		values (1, 3, 103, '01900000-0000-7000-8000-000000000004', 'refund')`)
	want :=
		`message_id,id,client_reference,batch,from,to,segments,encoding,carrier,link,carrier_message_id,accepted,submitted,final,status,reason,description,credits,cost_center,body
2,01J0000000E008000000000002,'-ref,01J0000000E008000000000007,ACME,25779000002,2,ucs2,leo,leo-1 leo-2,A1 A2,2026-03-01 00:00:00,2026-03-01 10:00:00,2026-03-01 10:00:05,sent,,,2,'@bank,'=1+1
4,01J0000000E008000000000004,,,ACME,25779000004,3,gsm7,leo,leo-1,,2026-03-02 10:00:00,2026-03-02 10:00:02,2026-03-03 10:00:00,failed,expired,It expired before it reached a carrier. Send it again if it is still useful.,0,,expired
5,01J0000000E008000000000005,,,INTUMWATEST,25779000005,1,gsm7,leo,,,2026-03-31 23:59:59,,,pending,,,0,,test
`
	got := w.streamed(Request{Bodies: true})
	if text := strings.ReplaceAll(strings.TrimPrefix(string(got), texts.CSVMark), "\r\n", "\n"); text != want {
		t.Errorf("streamed\n%s\nnot\n%s", text, want)
	}
	if err := w.ask(Request{Bodies: true}); err != nil {
		t.Fatal(err)
	}
	w.take()
	if stored := w.content(false); !bytes.Equal(stored, got) {
		t.Errorf("stored\n%s", stored)
	}
	if err := w.ask(Request{Operators: true}); err != nil {
		t.Fatal(err)
	}
	w.take()
	if rows := w.rows(w.content(true), ','); rows[1][5] != "2577XXXXX02" || slices.Contains(rows[0], "body") {
		t.Errorf("an administrator gets %q", rows[:2])
	}
	var french bytes.Buffer
	if _, err := w.Stream(t.Context(), &french, Request{Company: 1, Month: march, Language: "fr"}); err != nil {
		t.Fatal(err)
	}
	if rows := w.rows(french.Bytes(), ';'); rows[2][15] != "expired" || !strings.Contains(rows[2][16], "expiré") {
		t.Errorf("French: %q", rows[2])
	}
}

// TestKilled: a process is killed between any two steps, and its late write comes after another process has gone on.
// The file is offered only when it is complete, and equals what one process writes at once.
func TestKilled(t *testing.T) {
	w := newWorld(t, 0)
	w.fill(5*step + 7)
	if err := w.ask(Request{Bodies: true}); err != nil {
		t.Fatal(err)
	}
	id := w.listed(false)[0].ID
	var late *Export // as a process that stopped for long has it
	for steps := 0; ; steps++ {
		x := w.listed(false)[0]
		if x.DoneAt != nil {
			if steps != 6 {
				t.Errorf("%d steps", steps)
			}
			break
		}
		if _, err := w.Get(t.Context(), 1, false, id); !errors.Is(err, ErrNotFound) {
			t.Errorf("after %d steps it is offered: %v", steps, err)
		}
		if late != nil {
			if err := w.step(t.Context(), late); !errors.Is(err, errLost) {
				t.Errorf("the late write: %v", err)
			}
		}
		late = new(w.listed(false)[0])
		if err := w.process(0).step(t.Context(), &x); err != nil {
			t.Fatal(err)
		}
		if got := w.listed(false)[0].Percent(); steps > 0 && x.DoneAt == nil && (got <= 0 || got > 100) {
			t.Errorf("%d %%", got)
		}
	}
	x := w.listed(false)[0]
	if want := w.streamed(Request{Bodies: true}); !bytes.Equal(w.content(false), want) || x.Size != int64(len(want)) ||
		x.Messages != 5*step+7 {
		t.Errorf("%d bytes and %d messages, not %d", x.Size, x.Messages, len(want))
	}
	if x.Size < pieceSize {
		t.Errorf("%d bytes are one piece", x.Size)
	}
	if err := iotest.TestReader(w.open(x), w.content(false)); err != nil {
		t.Error(err)
	}
}

// TestTaken: an export that a process has taken is free again after the lease, and not before.
func TestTaken(t *testing.T) {
	w := newWorld(t, 0)
	w.fill(1)
	if err := w.ask(Request{}); err != nil {
		t.Fatal(err)
	}
	w.exec(`update exports set taken_until = now() + interval '1 minute'`)
	if w.take() {
		t.Error("two processes have it")
	}
	w.exec(`update exports set taken_until = now()`)
	if !w.take() || !w.listed(false)[0].Ready() {
		t.Error("nobody continues it")
	}
}

// TestTurns: a short export does not wait for the end of a long one.
func TestTurns(t *testing.T) {
	w := newWorld(t, 0)
	w.fill(40 * step)
	if err := w.ask(Request{Operators: true}); err != nil {
		t.Fatal(err)
	}
	w.exec(`insert into exports (company_id, month, language, operators, bodies, expires_at)
		values (2, '2026-03-01', 'fr', false, false, now() + interval '1 day')`)
	for range 2 {
		w.take()
	}
	var done int
	if err := w.pool.QueryRow(t.Context(), `select count(done_at) from exports where company_id = 2`).Scan(
		&done); err != nil || done != 1 {
		t.Errorf("company 2 waits (%v)", err)
	}
}

// TestBounds: a company has one export in progress and twelve in all, and nobody gets one when the space is used up.
func TestBounds(t *testing.T) {
	w := newWorld(t, 0)
	for n := range kept + 2 {
		if err := w.ask(Request{}); err != nil {
			t.Fatal(n, err)
		}
		if err := w.ask(Request{}); !errors.Is(err, ErrRunning) {
			t.Errorf("a second one: %v", err)
		}
		w.take()
	}
	if err := w.ask(Request{Operators: true}); err != nil {
		t.Errorf("the administrators' own: %v", err)
	}
	if n := len(w.listed(false)); n != kept {
		t.Errorf("%d are kept", n)
	}
	w.exec(`update exports set size = $1 where id = (select max(id) from exports where not operators)`, int64(sizeOfOne)+1)
	if err := w.ask(Request{}); err != nil {
		t.Fatal(err)
	}
	if n := len(w.listed(false)); n != 1 {
		t.Errorf("beside a large one %d are kept", n)
	}
	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.exec(`update exports set size = $1 where operators`, int64(sizeOfAll))
	w.exec(`update exports set done_at = now()`)
	if err := w.ask(Request{}); !errors.Is(err, ErrFull) {
		t.Errorf("without space: %v", err)
	}
}

// TestErase: an erasure deletes the content of every file, also of one in progress, and says so.
func TestErase(t *testing.T) {
	w := newWorld(t, 0)
	w.fill(step + 1)
	if err := w.ask(Request{}); err != nil {
		t.Fatal(err)
	}
	w.take()
	done := w.listed(false)[0]
	if err := w.ask(Request{Operators: true}); err != nil {
		t.Fatal(err)
	}
	x := w.listed(true)[0]
	if err := w.step(t.Context(), &x); err != nil {
		t.Fatal(err)
	}
	if n, err := Erase(t.Context(), w.pool); err != nil || n != 2 {
		t.Errorf("%d files (%v)", n, err)
	}
	if err := w.step(t.Context(), &x); !errors.Is(err, errLost) {
		t.Errorf("it is written on: %v", err)
	}
	if _, err := w.Get(t.Context(), 1, false, done.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("it is offered: %v", err)
	}
	if _, err := io.ReadAll(w.open(done)); !errors.Is(err, ErrNotFound) {
		t.Errorf("a download that has begun: %v", err)
	}
	if gone := w.listed(false)[0].Gone; gone != GoneErased {
		t.Errorf("gone: %q", gone)
	}
	if err := w.ask(Request{}); err != nil {
		t.Errorf("another: %v", err)
	}
}

// TestTexts: no text is kept in a file for longer than in its message.
func TestTexts(t *testing.T) {
	const keep = 30 * 24 * time.Hour
	for name, c := range map[string]struct {
		configured time.Duration
		rule       any // seconds; nil: none
		want       []string
		day        bool // it is kept for a day
	}{
		"forever":           {0, nil, []string{"0", "1", "2"}, false},
		"configured":        {keep, nil, []string{"", "", "2"}, true},
		"the company's own": {0, int64(keep / time.Second), []string{"", "", "2"}, true},
		"until final":       {0, 0, []string{"", "", ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.configured)
			if c.rule != nil {
				w.exec(`insert into body_rules (company_id, keep_seconds) values (1, $1)`, c.rule)
			}
			x := Export{Company: 1, Bodies: true, ExpiresAt: postgres.Now().Add(life)}
			if err := w.begin(t.Context(), &x); err != nil {
				t.Fatal(err)
			}
			f := form{language: w.words.Languages[0], bodies: true}
			if x.textsFrom != nil {
				f.textsFrom = *x.textsFrom
			}
			var got []string
			for body, age := range []time.Duration{keep + time.Hour, keep - time.Hour, keep - 25*time.Hour} {
				row := f.cells(&lookup.Sent{Record: lookup.Record{Body: fmt.Sprint(body), CreatedAt: postgres.Now().Add(-age)}}, 0)
				got = append(got, row[len(row)-1])
			}
			if left := x.ExpiresAt.Sub(postgres.Now()); !slices.Equal(got, c.want) || left > life ||
				(left <= textLife) != c.day {
				t.Errorf("texts %q are kept for %v", got, left)
			}
		})
	}
}

// TestWithdrawn: a change of how long a company's texts are kept deletes its files with texts, and no others.
func TestWithdrawn(t *testing.T) {
	w := newWorld(t, 0)
	for _, r := range []Request{{Bodies: true}, {}} {
		if err := w.ask(r); err != nil {
			t.Fatal(err)
		}
		w.take()
	}
	if err := pgx.BeginFunc(t.Context(), w.pool,
		func(tx pgx.Tx) error { return Withdraw(t.Context(), tx, 1) }); err != nil {
		t.Fatal(err)
	}
	if list := w.listed(false); list[0].Gone != "" || list[1].Gone != GoneTexts {
		t.Errorf("%+v", list)
	}
}
