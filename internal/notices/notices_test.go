package notices

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// received collects notices.
type received struct {
	mu      sync.Mutex
	notices []string
}

func (e *received) of(subject string) func(string) {
	return func(key string) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.notices = append(e.notices, strings.TrimSpace(subject+" "+key))
	}
}

func (e *received) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	notices := e.notices
	e.notices = nil
	return notices
}

// listen runs a listener until the test ends, and waits until it listens.
func listen(t *testing.T, pool *pgxpool.Pool) *received {
	t.Helper()
	e := &received{}
	l := New(pool, Options{})
	for _, subject := range []string{Account, Company, Endpoint, Link} {
		l.On(subject, e.of(subject))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	e.expects(t, Account, Company, Endpoint, Link)
	return e
}

// expects expects exactly these notices next.
func (e *received) expects(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(20 * time.Second); len(got) < len(want); time.Sleep(time.Millisecond) {
		got = append(got, e.take()...)
		if time.Now().After(deadline) {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("heard %q, want %q", got, want)
	}
}

// TestNotices: changes of cached rows are notified at the commit, and frequently written
// columns are not.
func TestNotices(t *testing.T) {
	pool := testenv.Pool(t)
	do := func(statements ...string) {
		t.Helper()
		for _, statement := range statements {
			if _, err := pool.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	do(`insert into users (email, name, password_hash) values ('a@example.com', 'A', 'x'), ('b@example.com', 'B', 'x')`,
		`insert into links (name, carrier) values ('lumitel 1', 'lumitel')`)
	e := listen(t, pool)
	for _, try := range []struct {
		statement string
		want      string
	}{
		{`insert into companies (owner_id, name) values (2, 'B')`, ""},
		{`update users set company_id = 1, role = 'owner' where id = 2`, "account 2"},
		{`update users set role = 'reader' where id = 2`, ""},
		{`update companies set approved = true`, "company 1"},
		{`update companies set verified = true`, "company 1"},
		{`insert into senders (company_id, name) values (1, 'ACME')`, "company 1"},
		{`update senders set approved = true`, "company 1"},
		{`delete from senders`, "company 1"},
		{`insert into api_tokens (user_id, name, secret_hash) values (2, 't', sha256('x'))`, "account 2"},
		{`update api_tokens set last_used_at = now()`, ""},
		{`update api_tokens set revoked_at = now()`, "account 2"},
		{`delete from api_tokens`, "account 2"},
		{`update users set test_number = '+25761000001' where id = 1`, "account 1"},
		{`update users set password_hash = 'y', factor_step = 1`, ""},
		{`insert into letters (kind, company_id) values ('approval', 1)`, "company 1"},
		{`update letters set tries = 1, due_at = now()`, ""},
		{`update letters set written_at = now()`, "company 1"},
		{`insert into webhook_endpoints (company_id, url, secret) values (1, 'https://example.com', 'x')`, "endpoint 1"},
		{`update webhook_endpoints set active = false`, "endpoint 1"},
		{`update webhook_endpoints set failing_since = now(), given_up_at = now(), told_at = now()`, ""},
		{`delete from webhook_endpoints`, "endpoint 1"},
		{`update links set state = 'bound', updated_at = now()`, ""},
		{`update links set paused = false`, ""},
		{`update links set paused = true`, "link lumitel 1"},
	} {
		do(try.statement, `select pg_notify('intumwa', 'endpoint end')`)
		want := []string{"endpoint end"}
		if try.want != "" {
			want = []string{try.want, "endpoint end"}
		}
		t.Log(try.statement)
		e.expects(t, want...)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `update companies set approved = false`); err != nil {
		t.Fatal(err)
	}
	do(`select pg_notify('intumwa', 'endpoint before')`)
	e.expects(t, "endpoint before") // not before the commit
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(`select pg_notify('intumwa', 'weather fine')`, `select pg_notify('intumwa', '')`,
		`select pg_notify('another', 'account 1')`, `select pg_notify('intumwa', 'endpoint end')`)
	e.expects(t, "endpoint end")
}

// TestKilled: after its connection is killed, the listener reconnects at once and reports
// Everything.
func TestKilled(t *testing.T) {
	pool := testenv.Pool(t)
	e := listen(t, pool)
	ended := []int32{} // they may linger a moment
	for range 3 {
		var pid int32
		if err := pool.QueryRow(t.Context(), `select pid, pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and application_name like '% notices' and pid <> all($1)`, ended).Scan(
			&pid, nil); err != nil {
			t.Fatal(err)
		}
		ended = append(ended, pid)
		e.expects(t, Account, Company, Endpoint, Link)
		if _, err := pool.Exec(t.Context(), `select pg_notify('intumwa', 'account 7')`); err != nil {
			t.Fatal(err)
		}
		e.expects(t, "account 7")
	}
}

// TestSilentlyCut: a connection that carries nothing any more, without being closed, is
// detected and replaced.
func TestSilentlyCut(t *testing.T) {
	pool := testenv.Pool(t)
	var dead atomic.Bool
	var dials atomic.Int32
	through := pool.Config()
	dial := through.ConnConfig.DialFunc
	through.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if dials.Add(1) > 1 {
			return c, nil
		}
		here, there := net.Pipe()
		go func() { _, _ = io.Copy(c, &cut{there, &dead}); _ = c.Close() }()
		go func() { _, _ = io.Copy(&cut{there, &dead}, c); _ = there.Close() }()
		return here, nil
	}
	through.MinConns = 0
	tunnelled, err := pgxpool.NewWithConfig(t.Context(), through)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tunnelled.Close)
	e := listen(t, tunnelled)
	if _, err := pool.Exec(t.Context(), `select pg_notify('intumwa', 'account 1')`); err != nil {
		t.Fatal(err)
	}
	e.expects(t, "account 1")
	dead.Store(true)
	if _, err := pool.Exec(t.Context(), `select pg_notify('intumwa', 'account 2')`); err != nil { // lost
		t.Fatal(err)
	}
	e.expects(t, Account, Company, Endpoint, Link)
}

// TestSilentHost: the first of several hosts accepts connections and never answers.
func TestSilentHost(t *testing.T) {
	pool := testenv.Pool(t)
	e := listen(t, testenv.BehindSilentHost(t, pool))
	if _, err := pool.Exec(t.Context(), `select pg_notify('intumwa', 'account 1')`); err != nil {
		t.Fatal(err)
	}
	e.expects(t, "account 1")
}

// cut drops all data once it is dead.
type cut struct {
	net.Conn
	dead *atomic.Bool
}

func (c *cut) Write(b []byte) (int, error) {
	if c.dead.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *cut) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.dead.Load() {
			return n, err
		}
	}
}
