package postgres

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// wire is the other end of a connection: what was written to it, and what it says.
type wire struct {
	net.Conn
	written bytes.Buffer
	says    []byte
	cut     int // octets at once
}

func (w *wire) Write(b []byte) (int, error) { return w.written.Write(b) }

func (w *wire) Read(b []byte) (int, error) {
	if len(w.says) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), w.cut)], w.says)
	w.says = w.says[n:]
	return n, nil
}

type (
	asks = []pgproto3.FrontendMessage
	says = []pgproto3.BackendMessage
)

func octets[M interface{ Encode([]byte) ([]byte, error) }](t *testing.T, messages []M) (out []byte) {
	t.Helper()
	for _, m := range messages {
		longer, err := m.Encode(out)
		if err != nil {
			t.Fatal(err)
		}
		out = longer
	}
	return out
}

// TestPreface: what goes out where a transaction begins, and what of the answers is left,
// wherever they are cut; the rows are one connection, one after the other.
func TestPreface(t *testing.T) {
	const preface = "SELECT preface"
	var (
		statement = asks{&pgproto3.Parse{Query: "SELECT $1"}, &pgproto3.Bind{Parameters: [][]byte{[]byte("C")}}, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}, &pgproto3.Sync{}}
		before    = asks{&pgproto3.Parse{Query: preface}, &pgproto3.Bind{}, &pgproto3.Execute{}}
		parsed    = says{&pgproto3.ParseComplete{}, &pgproto3.BindComplete{}}
		column    = &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("Z")}}}
		row       = &pgproto3.DataRow{Values: [][]byte{[]byte("E\x00\x00\x00\x05IZ")}}
		empty     = &pgproto3.DataRow{Values: [][]byte{}}
		one       = &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}
		begun     = &pgproto3.CommandComplete{CommandTag: []byte("BEGIN")}
		over      = &pgproto3.CommandComplete{CommandTag: []byte("COMMIT")}
		notice    = &pgproto3.NoticeResponse{Severity: "WARNING", Message: "C"}
		zone      = &pgproto3.ParameterStatus{Name: "TimeZone", Value: "UTC"}
		failure   = &pgproto3.ErrorResponse{Severity: "ERROR", Code: "57P01", Message: "no"}
		idle      = &pgproto3.ReadyForQuery{TxStatus: 'I'}
		open      = &pgproto3.ReadyForQuery{TxStatus: 'T'}
		broken    = &pgproto3.ReadyForQuery{TxStatus: 'E'}
	)
	query := func(text string) asks { return asks{&pgproto3.Query{String: text}} }
	join := func(parts ...says) (all says) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, cut := range []int{1, 2, 3, 5, 6, 7, 11, 4096} {
		w := &wire{cut: cut}
		l := &lent{Conn: w, preface: func() string { return preface }}
		for _, step := range []struct {
			name       string
			asks, sent asks
			says, kept says
		}{
			{name: "the connection's own questions", asks: query("SELECT state"), sent: query("SELECT state"),
				says: says{zone, column, row, one, idle}, kept: says{zone, column, row, one, idle}},
			{name: "a statement", asks: statement, sent: append(before, statement...),
				says: join(parsed, says{row, notice, one}, parsed, says{column, row, row, empty, one, idle}),
				kept: join(says{notice}, parsed, says{column, row, row, empty, one, idle})},
			{name: "another", asks: statement, sent: append(before, statement...),
				says: join(parsed, says{empty, one}, parsed, says{zone, column, one, idle}),
				kept: join(parsed, says{zone, column, one, idle})},
			{name: "a ping", asks: query("-- ping"), sent: query("-- ping"),
				says: says{&pgproto3.EmptyQueryResponse{}, idle}, kept: says{&pgproto3.EmptyQueryResponse{}, idle}},
			{name: "a statement without parameters", asks: query("DELETE FROM t"), sent: query(preface + ";DELETE FROM t"),
				says: says{column, row, one, &pgproto3.CommandComplete{CommandTag: []byte("DELETE 0")}, idle},
				kept: says{&pgproto3.CommandComplete{CommandTag: []byte("DELETE 0")}, idle}},
			{name: "BEGIN", asks: query("begin isolation level repeatable read"), sent: query("begin isolation level repeatable read;" + preface),
				says: says{begun, column, row, one, open}, kept: says{begun, open}},
			{name: "in the transaction", asks: statement, sent: statement,
				says: join(parsed, says{column, row, one, open}), kept: join(parsed, says{column, row, one, open})},
			{name: "a statement that fails in it", asks: query("SELECT 1/0"), sent: query("SELECT 1/0"),
				says: says{failure, broken}, kept: says{failure, broken}},
			{name: "its end", asks: query("rollback"), sent: query("rollback"),
				says: says{over, idle}, kept: says{over, idle}},
			{name: "a preface that fails", asks: statement, sent: append(before, statement...),
				says: join(parsed, says{failure, idle}), kept: says{failure, idle}},
			{name: "BEGIN that fails", asks: query("BEGIN twice"), sent: query("BEGIN twice;" + preface),
				says: says{failure, idle}, kept: says{failure, idle}},
			{name: "a transaction that brings its own BEGIN", asks: append(asks{&pgproto3.Parse{Query: "begin"}, &pgproto3.Bind{}, &pgproto3.Execute{}}, statement...),
				sent: append(append(before, &pgproto3.Parse{Query: "begin"}, &pgproto3.Bind{}, &pgproto3.Execute{}), statement...),
				says: join(parsed, says{empty, one}, parsed, says{begun}, parsed, says{column, row, one, open}),
				kept: join(parsed, says{begun}, parsed, says{column, row, one, open})},
			{name: "COMMIT", asks: query("commit"), sent: query("commit"), says: says{over, idle}, kept: says{over, idle}},
			{name: "a description", asks: asks{&pgproto3.Parse{Query: "SELECT 1"}, &pgproto3.Describe{ObjectType: 'S'}, &pgproto3.Sync{}},
				sent: append(before, &pgproto3.Parse{Query: "SELECT 1"}, &pgproto3.Describe{ObjectType: 'S'}, &pgproto3.Sync{}),
				says: join(parsed, says{empty, one, &pgproto3.ParseComplete{}, &pgproto3.ParameterDescription{}, column, idle}),
				kept: says{&pgproto3.ParseComplete{}, &pgproto3.ParameterDescription{}, column, idle}},
			{name: "the end of the connection", asks: asks{&pgproto3.Terminate{}}, sent: asks{&pgproto3.Terminate{}}},
		} {
			w.written.Reset()
			if n, err := l.Write(octets(t, step.asks)); err != nil || n != len(octets(t, step.asks)) {
				t.Fatalf("%s: %d octets written, %v", step.name, n, err)
			}
			if got := w.written.Bytes(); !bytes.Equal(got, octets(t, step.sent)) {
				t.Errorf("%s: %q was sent, want %q", step.name, got, octets(t, step.sent))
			}
			w.says = octets(t, step.says)
			if got, err := io.ReadAll(l); err != nil || !bytes.Equal(got, octets(t, step.kept)) {
				t.Errorf("%s, cut at %d: %q is left (%v), want %q", step.name, cut, got, err, octets(t, step.kept))
			}
			l.on = true
		}
	}
}

// TestPrefaceText: it makes the settings that a pooler does not, and from when a timeline
// is known it ends the session of a server on an older one.
func TestPrefaceText(t *testing.T) {
	p := NewPrimary(nil)
	config, err := poolConfig("postgres://u@h/d?search_path=o'brien%5C&TimeZone=UTC&tcp_keepalives_idle=1", Options{Pooler: true, BatchUpdates: true, Primary: p})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TimeZone", "application_name"} {
		if config.ConnConfig.RuntimeParams[name] == "" {
			t.Errorf("%s is not left to the pooler, which keeps it for each client", name)
		}
	}
	if n := len(config.ConnConfig.RuntimeParams); n != 2 {
		t.Errorf("a pooler would refuse some of %v", config.ConnConfig.RuntimeParams)
	}
	conn, err := config.ConnConfig.AfterNetConnect(t.Context(), &config.ConnConfig.Config, &wire{})
	if err != nil {
		t.Fatal(err)
	}
	l, ok := conn.(*lent)
	if !ok {
		t.Fatal("the connection has no preface")
	}
	text := l.preface()
	for _, part := range []string{"SELECT set_config('enable_hashjoin', 'off', true), ", `set_config('search_path', E'o''brien\\', true)`,
		"set_config('lock_timeout', '5000', true)", "set_config('statement_timeout', '10000', true)", "set_config('jit', 'off', true)"} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is not in %s", part, text)
		}
	}
	if strings.Contains(text, "tcp_") || strings.Contains(text, "terminate") {
		t.Errorf("the preface is %s", text)
	}
	for timeline, want := range map[int64]string{1: "'00000001'", 171: "'000000AB'"} {
		p.timeline = timeline
		if later := l.preface(); !strings.HasPrefix(later, text) || !strings.Contains(later, "< "+want+" THEN pg_terminate_backend(pg_backend_pid())") {
			t.Errorf("on timeline %d the preface is %s", timeline, later)
		}
	}
	if _, err := poolConfig("postgres://u@h/d?options=-csearch_path%3Dx", Options{Pooler: true}); err == nil {
		t.Error("options are accepted, which a pooler may drop")
	}
}
