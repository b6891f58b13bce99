package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// ignored has PgBouncer drop what a session of ours begins with, as many an installation
// does so that programs can connect.
const ignored = "ignore_startup_parameters = statement_timeout, lock_timeout, idle_in_transaction_session_timeout, tcp_keepalives_idle, " +
	"tcp_keepalives_interval, tcp_keepalives_count, jit, enable_seqscan, enable_hashjoin, enable_mergejoin"

// TestPoolerKeepsSettings: two pools share one session of PostgreSQL by a pooler, and each
// transaction of theirs, however it is begun, has its own pool's settings. Nothing of them
// is left in the session.
func TestPoolerKeepsSettings(t *testing.T) {
	t.Parallel()
	bouncer := testenv.NewPgBouncer(t, testenv.Database(t), "default_pool_size = 1")
	plain := open(t, bouncer.URL(), postgres.Options{Pooler: true})
	batch := open(t, bouncer.URL()+"&search_path=pg_catalog%2Cpublic&TimeZone=Africa/Bujumbura", postgres.Options{Pooler: true, BatchUpdates: true, StatementTimeout: 1234 * time.Millisecond})
	const settings = `current_setting('statement_timeout') || ' ' || current_setting('lock_timeout') || ' ' || current_setting('enable_seqscan') || ' ' ||
		current_setting('jit') || ' ' || current_setting('idle_in_transaction_session_timeout') || ' ' || current_setting('search_path') || ' ' || current_setting('TimeZone')`
	if _, err := plain.Exec(t.Context(), `CREATE TABLE said (at text)`); err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(ctx context.Context, pool *pgxpool.Pool) (string, error){
		"a query": func(ctx context.Context, pool *pgxpool.Pool) (said string, err error) {
			return said, pool.QueryRow(ctx, `SELECT `+settings+` WHERE $1`, true).Scan(&said)
		},
		"a query without arguments": func(ctx context.Context, pool *pgxpool.Pool) (said string, err error) {
			return said, pool.QueryRow(ctx, `SELECT `+settings).Scan(&said)
		},
		"a statement": func(ctx context.Context, pool *pgxpool.Pool) (said string, err error) {
			if _, err := pool.Exec(ctx, `INSERT INTO public.said SELECT `+settings); err != nil {
				return "", err
			}
			return said, pool.QueryRow(ctx, `DELETE FROM public.said RETURNING at`).Scan(&said)
		},
		"a statement with arguments": func(ctx context.Context, pool *pgxpool.Pool) (said string, err error) {
			if _, err := pool.Exec(ctx, `INSERT INTO public.said SELECT `+settings+` WHERE $1`, true); err != nil {
				return "", err
			}
			return said, pool.QueryRow(ctx, `DELETE FROM public.said RETURNING at`).Scan(&said)
		},
		"a batch": func(ctx context.Context, pool *pgxpool.Pool) (said string, err error) {
			b := &pgx.Batch{}
			b.Queue(`SELECT 1`)
			b.Queue(`SELECT ` + settings).QueryRow(func(row pgx.Row) error { return row.Scan(&said) })
			return said, pool.SendBatch(ctx, b).Close()
		},
		"a transaction": func(ctx context.Context, pool *pgxpool.Pool) (said string, err error) {
			return said, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				return tx.QueryRow(ctx, `SELECT `+settings).Scan(&said)
			})
		},
		"a transaction of a kind": func(ctx context.Context, pool *pgxpool.Pool) (said string, err error) {
			return said, pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
				var level, only string
				err := tx.QueryRow(ctx, `SELECT `+settings+`, current_setting('transaction_isolation'), current_setting('transaction_read_only')`).Scan(&said, &level, &only)
				if level != "repeatable read" || only != "on" {
					said += " (" + level + ", read only: " + only + ")"
				}
				return err
			})
		},
		"our transaction": func(ctx context.Context, pool *pgxpool.Pool) (said string, err error) {
			return said, postgres.InTx(ctx, pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `SELECT 1`); err != nil {
					return err
				}
				return tx.QueryRow(ctx, `SELECT `+settings).Scan(&said)
			})
		},
	}
	for range 3 {
		for way, says := range ways {
			for pool, want := range map[*pgxpool.Pool]string{plain: `10s 5s on off 5s "$user", public UTC`, batch: `1234ms 5s off off 5s pg_catalog,public Africa/Bujumbura`} {
				if said, err := says(t.Context(), pool); err != nil || said != want {
					t.Errorf("%s has %s, want %s (%v)", way, said, want, err)
				}
			}
		}
	}
	err := postgres.InTx(t.Context(), batch, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL statement_timeout = 0`); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `SELECT pg_sleep($1)`, 2)
		return err
	})
	if err != nil {
		t.Errorf("a transaction that sets something itself: %v", err)
	}
	if _, err := plain.Exec(t.Context(), `SELECT pg_sleep(2)`); err != nil {
		t.Errorf("a statement of two seconds: %v", err)
	}
	if _, err := batch.Exec(t.Context(), `SELECT pg_sleep($1)`, 20); postgres.SQLState(err) != "57014" {
		t.Errorf("a statement that takes too long ends with %v", err)
	}
	direct, err := pgx.Connect(t.Context(), bouncer.URL()+"&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close(t.Context())
	var left string
	if err := direct.QueryRow(t.Context(), `SELECT current_setting('statement_timeout') || current_setting('enable_seqscan') || current_setting('search_path')`).Scan(&left); err != nil || left != `0on"$user", public` {
		t.Errorf("left in the session: %s (%v)", left, err)
	}
}

// TestPoolerTypes: what we hand to statements, and get from them, is the same with a
// pooler and without, while many use few sessions.
func TestPoolerTypes(t *testing.T) {
	t.Parallel()
	database := testenv.Database(t)
	bouncer := testenv.NewPgBouncer(t, database, "default_pool_size = 3")
	pool := open(t, bouncer.URL(), postgres.Options{Pooler: true, MaxConns: 8})
	direct := open(t, database, postgres.Options{})
	if _, err := direct.Exec(t.Context(), `CREATE TYPE shade AS ENUM ('dark', 'light'); CREATE DOMAIN credits AS bigint CHECK (VALUE >= 0)`); err != nil {
		t.Fatal(err)
	}
	type named string
	moment, none := time.Date(2026, 2, 28, 23, 59, 59, 123456000, time.UTC), (*string)(nil)
	text := `a 'quoted' \ "text" {of}, many, NULL — é🙂`
	for what, arg := range map[string]any{
		"$1::bigint[]": []int64{1, -5, 1 << 62}, "$1::int[]": []int32{3, 1}, "$1::smallint[]": []int16{3, 1}, "$1::text[]": []string{text, "", "NULL"},
		"$1::bytea": []byte{0, 1, 0xff, '\\'}, "$1::bytea[]": [][]byte{{0, 0xff}, {}}, "$1::boolean[]": []bool{true, false},
		"$1::timestamptz": moment, "$1::timestamptz[]": []time.Time{moment, moment.Add(time.Microsecond)}, "$1::date": moment.Truncate(24 * time.Hour),
		"$1::interval": 36*time.Hour + time.Microsecond, "$1::interval[]": []time.Duration{time.Second, -time.Hour},
		"$1::jsonb": map[string]any{"a": []any{text, 1.5, nil}}, "$1::json": map[string]any{"b": text}, "$1::text": text, "$1::shade": named("light"), "$1::shade[]": []string{"dark"},
		"$1::credits": int64(7), "$1::numeric::text": "12345678901234567890.5", "$1::real": float32(1.25), "$1::double precision": 1e300,
		"coalesce($1, 'none')": none, "$1::text::xid8::text": "18446744073709551615", "$1::text::inet::text": "10.0.0.1/32", "$1::uuid": [16]byte{1, 2, 3},
		"encode(sha256($1), 'hex')": []byte(text), "(SELECT array_agg(x || '!' ORDER BY x) FROM unnest($1::text[]) x)": []string{"b", "a"},
		"$1::text[] IS NULL": []string(nil), "hashtextextended($1, 0)": text, "$1 || ' ' || $1": named("twice"),
	} {
		result := func(pool *pgxpool.Pool) (any, any, error) {
			rows, err := pool.Query(t.Context(), "SELECT "+what+", count(*) FROM generate_series(1, 3)", arg)
			if err != nil {
				return nil, nil, err
			}
			values, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
			if err != nil {
				return nil, nil, err
			}
			into := reflect.New(reflect.TypeOf(arg))
			if err := pool.QueryRow(t.Context(), "SELECT $1::"+typeOf(what), arg).Scan(into.Interface()); err != nil {
				return values, nil, fmt.Errorf("reading it back: %w", err)
			}
			return values, into.Elem().Interface(), nil
		}
		want, wantBack, err := result(direct)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				got, back, err := result(pool)
				if err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(back, wantBack) {
					t.Errorf("%s: %#v and %#v with a pooler (%v), %#v and %#v without", what, got, back, err, want, wantBack)
				}
			})
		}
		all.Wait()
	}
	// One connection's description of a statement outlives the statement's session.
	for range 20 {
		tag, err := pool.Exec(t.Context(), `INSERT INTO sweeps (name, up_to) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET up_to = excluded.up_to`, "pooler", 7)
		if err != nil || tag.RowsAffected() != 1 {
			t.Errorf("a statement said again: %v, %v", tag, err)
		}
	}
	// What fails says why, and the connection is good for the next.
	for range 3 {
		if err := pool.QueryRow(t.Context(), `SELECT 1 / $1::int`, 0).Scan(new(int)); postgres.SQLState(err) != "22012" {
			t.Errorf("a division by nothing: %v", err)
		}
		b := &pgx.Batch{}
		b.Queue(`INSERT INTO sweeps (name, up_to) VALUES ($1, 1)`, "half")
		b.Queue(`SELECT $1::text::int`, "no number")
		if err := pool.SendBatch(t.Context(), b).Close(); postgres.SQLState(err) != "22P02" {
			t.Errorf("a batch that fails: %v", err)
		}
	}
	var half int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM sweeps WHERE name = 'half'`).Scan(&half); err != nil || half != 0 {
		t.Errorf("of a batch that failed %d rows are there (%v)", half, err)
	}
}

// typeOf is the type that the first parameter of an expression gets, as far as it is said.
func typeOf(expression string) string {
	_, name, ok := strings.Cut(expression, "$1::")
	if !ok {
		if strings.Contains(expression, "sha256") {
			return "bytea"
		}
		return "text"
	}
	name, _, _ = strings.Cut(name, "::")
	for _, end := range []string{")", " IS"} {
		name, _, _ = strings.Cut(name, end)
	}
	return name
}

// TestPoolerInBetween: where sessions are needed, a pooler that does not leave them is
// refused, in whichever way it takes them; for transactions it is good.
func TestPoolerInBetween(t *testing.T) {
	t.Parallel()
	database := testenv.Database(t)
	for name, c := range map[string]struct {
		settings []string
		given    bool   // the database gives each session what ours begin with
		sessions string // what is said where sessions are needed; "" nothing
		pooler   string // and where transactions are enough
	}{
		"transactions":                   {sessions: "unsupported startup parameter"},
		"transactions, settings dropped": {settings: []string{ignored}, sessions: "it is in transaction mode"},
		"transactions, settings given":   {settings: []string{ignored}, given: true, sessions: "it is in transaction mode"},
		"one session for all":            {settings: []string{ignored, "default_pool_size = 1"}, sessions: "it is in transaction mode"},
		"sessions":                       {settings: []string{"pool_mode = session"}, sessions: "unsupported startup parameter"},
		"sessions, settings dropped": {settings: []string{"pool_mode = session", ignored},
			sessions: "it drops their settings ("},
		"sessions, settings given": {settings: []string{"pool_mode = session", ignored}, given: true},
		"statements":               {settings: []string{"pool_mode = statement"}, sessions: "unsupported startup parameter", pooler: "statement pooling mode"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leads := database
			if c.given {
				leads = testenv.Database(t)
				admin := open(t, leads, postgres.Options{})
				for setting, value := range map[string]string{"statement_timeout": "10s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "5s", "jit": "off"} {
					if _, err := admin.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET `+setting+` = ''`+value+`''', current_database()); END $$`); err != nil {
						t.Fatal(err)
					}
				}
			}
			bouncer := testenv.NewPgBouncer(t, leads, c.settings...)
			for _, busy := range []bool{false, true} {
				if busy { // sessions change hands meanwhile
					others, stop := context.WithCancel(t.Context())
					var all sync.WaitGroup
					defer all.Wait()
					defer stop()
					for range 3 {
						all.Go(func() {
							conn, err := pgx.Connect(others, bouncer.URL()+"&default_query_exec_mode=simple_protocol")
							if err != nil {
								return
							}
							defer conn.Close(t.Context())
							for others.Err() == nil {
								_, _ = conn.Exec(others, `SELECT pg_sleep(0.001)`)
							}
						})
					}
				}
				for what, try := range map[string]func() error{
					"Open": func() error {
						pool, err := postgres.Open(t.Context(), bouncer.URL(), postgres.Options{})
						if err == nil {
							pool.Close()
						}
						return err
					},
					"Migrate": func() error { return postgres.Migrate(t.Context(), bouncer.URL()) },
				} {
					err := try()
					switch {
					case c.sessions == "" && what == "Open" && err != nil, c.sessions != "" && (!errors.Is(err, postgres.ErrPooled) || !strings.Contains(err.Error(), c.sessions)):
						t.Errorf("%s says %v, want %q", what, err, c.sessions)
					}
				}
				pool, err := postgres.Open(t.Context(), bouncer.URL(), postgres.Options{Pooler: true})
				switch {
				case err == nil:
					if _, err := postgres.Connect(t.Context(), pool, time.Second); !errors.Is(err, postgres.ErrPooled) {
						t.Errorf("a session can be had of a pooler's pool: %v", err)
					}
					pool.Close()
					if c.pooler != "" {
						t.Errorf("it is taken for a pooler of transactions, want %q", c.pooler)
					}
				case c.pooler == "" || !strings.Contains(err.Error(), c.pooler):
					t.Errorf("it is no pooler of transactions: %v, want %q", err, c.pooler)
				}
			}
		})
	}
}

// TestTogether: two ways to one database are told from ways to two.
func TestTogether(t *testing.T) {
	t.Parallel()
	database, other := testenv.Database(t), testenv.Database(t)
	bouncer := testenv.NewPgBouncer(t, database)
	sessions := open(t, database, postgres.Options{MaxConns: 1})
	for range 3 {
		if err := postgres.Together(t.Context(), sessions, open(t, bouncer.URL(), postgres.Options{Pooler: true})); err != nil {
			t.Errorf("one database: %v", err)
		}
	}
	if err := postgres.Together(t.Context(), open(t, other, postgres.Options{}), open(t, bouncer.URL(), postgres.Options{Pooler: true})); !errors.Is(err, postgres.ErrElsewhere) {
		t.Errorf("another database of the server: %v", err)
	}
	server := testenv.NewPostgresServer(t)
	if err := postgres.Together(t.Context(), open(t, server.URL(), postgres.Options{}), open(t, bouncer.URL(), postgres.Options{Pooler: true})); !errors.Is(err, postgres.ErrElsewhere) {
		t.Errorf("another server: %v", err)
	}
	var locks int
	if err := sessions.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&locks); err != nil || locks != 0 {
		t.Errorf("%d locks are left (%v)", locks, err)
	}
}

// TestPoolerOldPrimary: a pooler that lends sessions of an old primary again, to
// connections that were made when it led to the new one: they are ended before anything
// is done in them. When it leads to the new one, all is well. (With TLS, through which
// connections must be known as well.)
func TestPoolerOldPrimary(t *testing.T) {
	t.Parallel()
	pair := testenv.NewPostgresPair(t)
	in := func(server *testenv.Server) string {
		parsed, err := url.Parse(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		parsed.Path = "/intumwa"
		return parsed.String()
	}
	old := pair.Primary
	bouncer := testenv.NewPgBouncer(t, in(old), "client_tls_sslmode = require")
	known := postgres.NewPrimary(nil)
	known.Look(t.Context(), pair.URL("none"))
	pool := open(t, bouncer.URL(), postgres.Options{Pooler: true, Primary: known, MaxConns: 2})
	write := func(name string) error {
		_, err := pool.Exec(t.Context(), `INSERT INTO sweeps (name, up_to) VALUES ($1, 1)`, name)
		return err
	}
	if err := write("before"); err != nil {
		t.Fatal(err)
	}
	pair.Unsynchronized() // it takes writes when it is alone, if it is asked
	pair.Promote()
	known.Look(t.Context(), pair.URL("none"))
	eventually := func(what string, try func() error) {
		t.Helper()
		var err error
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
			if err = try(); err == nil {
				return
			}
		}
		t.Fatalf("%s: %v", what, err)
	}
	eventually("the pooler leads to the old primary still", func() error { // connections of before are cut meanwhile
		err := write("early")
		if err == nil {
			t.Fatal("the old primary has taken a write")
		}
		if !strings.Contains(err.Error(), "not the primary any more") {
			return err
		}
		return nil
	})
	bouncer.Lead(in(pair.Primary))
	eventually("the pooler leads to the new primary", func() error { return write("after") })
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if timeline := postgres.TimelineOf(known, conn.Conn().PgConn()); timeline != 2 {
		t.Errorf("the connection leads to timeline %d for all that is known, want 2", timeline)
	}
	bouncer.Lead(in(old))
	eventually("the pooler leads back", func() error {
		if _, err := conn.Exec(t.Context(), `INSERT INTO sweeps (name, up_to) VALUES ($1, 1) ON CONFLICT DO NOTHING`, "late"); err == nil {
			return errors.New("it still leads to the new primary")
		}
		return nil
	})
	if !conn.Conn().IsClosed() {
		t.Error("the connection is kept")
	}
	direct := open(t, in(old), postgres.Options{})
	var late int
	if err := direct.QueryRow(t.Context(), `SELECT count(*) FROM sweeps WHERE name IN ('early', 'late', 'after')`).Scan(&late); err != nil || late != 0 {
		t.Errorf("the old primary has taken %d writes (%v)", late, err)
	}
	bouncer.Lead(in(pair.Primary))
	eventually("the pooler leads to the new primary again", func() error { return write("in the end") })
}
