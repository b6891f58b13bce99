package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// lent is a connection to a pooler that lends it a session of PostgreSQL for one
// transaction at a time, another one each time perhaps. What a session of ours begins
// with would be lost on the way, and a server that was the primary when the connection
// was made need not be the one that a later transaction gets. So each transaction says
// both itself: lent writes the preface before its first statement (behind a BEGIN that
// comes alone), in the same octets and so in the same round trip, and takes the preface's
// answers out of what comes back. Who uses the connection sees nothing of it; when the
// preface fails, its error is that of the first statement, which was not run.
//
// The protocol: https://www.postgresql.org/docs/current/protocol-flow.html. The messages
// up to a Sync are one transaction, and so are the statements of one Query; a setting that
// is local holds until its end. pgx hands over whole messages, waits for ReadyForQuery
// before it begins something new, and gives up a connection that it has interrupted.
type lent struct {
	net.Conn
	settings map[string]string // that each transaction begins with
	preface  func() string     // one SELECT with one row: it makes them, and looks at the server

	mu   sync.Mutex
	on   bool // from when the server was judged: before, only that is asked
	idle bool // no transaction is open or under way
	hush hush

	// The message that is being read.
	kind    byte
	head    int // octets read of its kind and length, of five
	left    int // of its body; while head < 5 its length, as far as it is known
	dropped bool
}

// hush says which answers are the preface's.
type hush byte

const (
	none       hush = iota
	now             // those up to and with the next CommandComplete
	afterBegin      // those behind the next CommandComplete
)

// Kinds of messages, https://www.postgresql.org/docs/current/protocol-message-formats.html.
const (
	kindParse           = 'P'
	kindBind            = 'B'
	kindQuery           = 'Q'
	kindTerminate       = 'X'
	kindCommandComplete = 'C'
	kindError           = 'E'
	kindNotice          = 'N'
	kindParameter       = 'S'
	kindNotification    = 'A'
	kindReady           = 'Z'
)

const header = 5 // octets: a kind, and a length that counts itself

// Write sends whole messages, and the preface where a transaction begins.
func (l *lent) Write(b []byte) (int, error) {
	out := l.begin(b)
	n, err := l.Conn.Write(out)
	if err != nil {
		return min(n, len(b)), err //nolint:wrapcheck // as a net.Conn's: it is looked at
	}
	return len(b), nil
}

// begin is b with the preface, if b begins a transaction.
func (l *lent) begin(b []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.on || !l.idle || len(b) < header || b[0] == kindTerminate {
		return b
	}
	l.idle = false
	switch b[0] {
	case kindParse, kindBind:
		l.hush = now
		return append(extended(l.preface()), b...)
	case kindQuery:
		text, rest, ok := queryOf(b)
		switch {
		case !ok || strings.HasPrefix(text, "--"): // pgx's ping: no transaction
			return b
		case len(text) >= len("begin") && strings.EqualFold(text[:len("begin")], "begin"):
			// Behind it, since an isolation level must be said before anything is read.
			l.hush = afterBegin
			text += ";" + l.preface()
		default:
			l.hush = now
			text = l.preface() + ";" + text
		}
		return append(encoded(&pgproto3.Query{String: text}), rest...)
	}
	return b
}

// queryOf takes a Query message from the front of b.
func queryOf(b []byte) (text string, rest []byte, ok bool) {
	end := 1 + int(binary.BigEndian.Uint32(b[1:header]))
	if end <= header || end > len(b) || b[end-1] != 0 {
		return "", nil, false
	}
	return string(b[header : end-1]), b[end:], true
}

// extended is a statement without parameters, of which no description is asked for.
func extended(sql string) []byte {
	return encoded(&pgproto3.Parse{Query: sql}, &pgproto3.Bind{}, &pgproto3.Execute{})
}

func encoded(messages ...pgproto3.FrontendMessage) (out []byte) {
	for _, m := range messages {
		longer, err := m.Encode(out)
		if err != nil { // a text of a gigabyte: PostgreSQL is not asked to take it
			panic("postgres: a statement that no message takes: " + err.Error())
		}
		out = longer
	}
	return out
}

// Read reads what is not an answer to the preface.
func (l *lent) Read(b []byte) (int, error) {
	for {
		n, err := l.Conn.Read(b)
		kept := l.sift(b[:n])
		if kept > 0 || n == 0 || err != nil {
			return kept, err //nolint:wrapcheck // as a net.Conn's: it is looked at
		}
	}
}

// sift moves to the front of b what of it is to be kept, and returns how much that is.
// Messages may be cut anywhere.
func (l *lent) sift(b []byte) (kept int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; i < len(b); {
		n := 1
		switch {
		case l.head == 0:
			l.kind, l.left, l.dropped = b[i], 0, l.drops(b[i])
			l.head = 1
		case l.head < header:
			l.left = l.left<<8 | int(b[i])
			if l.head++; l.head == header {
				l.left -= header - 1
			}
		default:
			n = min(l.left, len(b)-i)
			if l.left -= n; l.kind == kindReady {
				l.idle, l.hush = b[i] == 'I', none
			}
		}
		if !l.dropped {
			if kept != i {
				copy(b[kept:], b[i:i+n])
			}
			kept += n
		}
		i += n
		if l.head == header && l.left <= 0 {
			l.head = 0
		}
	}
	return kept
}

// drops says whether a message of a kind that comes next is the preface's.
func (l *lent) drops(kind byte) bool {
	switch {
	case l.hush == none, kind == kindNotice, kind == kindParameter, kind == kindNotification:
		return false
	case kind == kindError, kind == kindReady:
		l.hush = none
		return false
	case l.hush == afterBegin:
		if kind == kindCommandComplete {
			l.hush = now
		}
		return false
	case kind == kindCommandComplete:
		l.hush = none
	}
	return true
}

// tracked are the settings whose value a pooler keeps for each of its clients, wherever
// their transactions go (PgBouncer: https://www.pgbouncer.org/config.html#ignore_startup_parameters).
var tracked = []string{"application_name", "client_encoding", "datestyle", "standard_conforming_strings", "timezone"}

// lend has the connections of a configuration, whose parameters are complete, bear a
// pooler that lends them sessions.
func (p *Primary) lend(config *pgconn.Config) {
	settings := make(map[string]string)
	for name, value := range config.RuntimeParams {
		lower := strings.ToLower(name)
		switch {
		case slices.Contains(tracked, lower):
			continue
		case !strings.HasPrefix(lower, "tcp_"): // of the pooler's own connections: its to say
			settings[name] = value
		}
		delete(config.RuntimeParams, name)
	}
	preface := p.preface(settings)
	before := config.AfterNetConnect
	config.AfterNetConnect = func(ctx context.Context, config *pgconn.Config, conn net.Conn) (net.Conn, error) {
		if before != nil {
			wrapped, err := before(ctx, config, conn)
			if err != nil {
				return wrapped, err
			}
			conn = wrapped
		}
		return &lent{Conn: conn, settings: settings, preface: preface}, nil
	}
	after := config.AfterConnect
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if l, ok := conn.Conn().(*lent); ok {
			l.mu.Lock()
			l.on = true
			l.mu.Unlock()
		}
		if after != nil {
			return after(ctx, conn)
		}
		return nil
	}
}

// preface returns what makes the text: the settings, and the end of the session when its
// server is on an older timeline than was seen (what is refused to a connection of our own
// when it is made). A standby has no insert position to tell, so the statement fails there.
func (p *Primary) preface(settings map[string]string) func() string {
	var set []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		set = append(set, "set_config("+literal(name)+", "+literal(settings[name])+", true)")
	}
	plain := "SELECT " + strings.Join(set, ", ")
	if len(set) == 0 {
		plain = "SELECT true"
	}
	var mu sync.Mutex
	var of int64
	text := plain
	return func() string {
		timeline := p.seen()
		mu.Lock()
		defer mu.Unlock()
		if timeline != of {
			of, text = timeline, fmt.Sprintf(`%s, CASE WHEN left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) COLLATE "C" < '%08X' THEN pg_terminate_backend(pg_backend_pid()) END`, plain, timeline)
		}
		return text
	}
}

// seen is the highest timeline that was; 0: no server has told one.
func (p *Primary) seen() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.timeline
}

// literal is a text as SQL writes it, with standard_conforming_strings on or off.
func literal(text string) string {
	if strings.Contains(text, `\`) {
		return `E'` + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + `'`
	}
	return `'` + strings.ReplaceAll(text, `'`, `''`) + `'`
}
