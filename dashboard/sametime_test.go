package dashboard

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// statements records what is sent to the database, and which of it changed rows: only a transaction that changed some
// waits for the disk and the standby at its COMMIT.
type statements struct {
	mu  sync.Mutex
	all []string
}

type statementKey struct{}

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, statementKey{}, data.SQL)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s *statements) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	sql, _ := ctx.Value(statementKey{}).(string)
	sql = strings.Join(strings.Fields(sql), " ")
	if !data.CommandTag.Select() && data.CommandTag.RowsAffected() > 0 {
		sql += " -- changes rows"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, sql)
}

func (s *statements) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.all
	s.all = nil
	return taken
}

// TestAccountsAreNotTimed: a request that names an address runs the same statements, with the same changes, whether the
// address has an account or not. So its duration shows nothing, however long a commit takes.
func TestAccountsAreNotTimed(t *testing.T) {
	trace := &statements{}
	w := stillWorld(t, func(r *Deps, _ *Options) {
		config := r.Pool.Config()
		config.ConnConfig.Tracer = trace
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		on := accountsOn(pool)
		r.People, r.SignIn, r.Sessions, r.Companies, r.Keys, r.Holders, r.Senders, r.TestNumbers = on.People, on.SignIn,
			on.Sessions, on.Companies, on.Keys, on.Holders, on.Senders, on.TestNumbers
		r.Tries.Account, r.Tries.Warnings = limit(t, 2, time.Hour), limit(t, 1, time.Hour)
	})
	owner, _, _ := w.customer("owner", "ISOKO", 0)
	w.user("known@example.com", false)
	w.user("disabled@example.com", false)
	w.exec(`update users set disabled_at = now() where email like 'disabled%'`)
	for _, c := range []struct {
		name string
		send func(email string) answer
		want int
	}{
		{"a lost password", func(email string) answer { return newClient(w).post("/password", "email", email) },
			http.StatusSeeOther},
		{"a lost password, again", func(email string) answer { return newClient(w).post("/password", "email", email) },
			http.StatusSeeOther},
		{"a sign-up", func(email string) answer { return newClient(w).post("/sign-up", "name", "Aline", "email", email) },
			http.StatusSeeOther},
		{"a sign-up, again", func(email string) answer {
			return newClient(w).post("/sign-up", "name", "Aline", "email", email)
		}, http.StatusSeeOther},
		{"a wrong password", func(email string) answer {
			return newClient(w).post("/sign-in", "email", email, "password", "a wrong password")
		}, http.StatusUnprocessableEntity},
		{"a wrong password in an invented browser", func(email string) answer {
			c := newClient(w)
			c.plantCookie("intumwa-device", strings.Repeat("x", 86))
			return c.post("/sign-in", "email", email, "password", "a wrong password")
		}, http.StatusUnprocessableEntity},
		{"too many wrong passwords", func(email string) answer {
			return newClient(w).post("/sign-in", "email", email, "password", "a wrong password")
		}, http.StatusTooManyRequests},
		{"an invitation", func(email string) answer {
			return owner.post("/people", "name", "Aline", "role", "reader", "email", email)
		}, http.StatusSeeOther},
	} {
		var of [][]string
		w.exec(`update sessions set seen_at = now()`) // it is noted once a minute
		for _, email := range []string{"known@example.com", "unknown@example.com", "disabled@example.com"} {
			trace.take()
			if a := c.send(email); a.StatusCode != c.want {
				t.Errorf("%s, %s: %d, want %d", c.name, email, a.StatusCode, c.want)
			}
			of = append(of, trace.take())
		}
		if len(of[0]) == 0 || !slices.Equal(of[0], of[1]) || !slices.Equal(of[0], of[2]) {
			t.Errorf("%s: known\n\t%s\nunknown\n\t%s\ndisabled\n\t%s", c.name, strings.Join(of[0], "\n\t"),
				strings.Join(of[1], "\n\t"), strings.Join(of[2], "\n\t"))
		}
	}
}
