package operations

import (
	"context"
	"testing"
	"time"

	"intumwa/internal/audit"
	"intumwa/internal/testenv"
	"intumwa/webhooks"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// almost is a context whose deadline is near and never comes: a slow machine needs longer for a part.
type almost struct{ context.Context }

func (almost) Deadline() (time.Time, bool) {
	return time.Now().Add(recoverReserve - time.Millisecond), true
}

// TestRecoverAll: a recovery takes all deliveries, however many, or says how many are left when its time ends.
func TestRecoverAll(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	by := By("test", nil, Deps{Pool: pool, Webhooks: webhooks.New(pool, webhooks.Options{})})
	const more = 10
	for _, try := range []struct {
		name         string
		short        bool // less time than a part may take
		resent, left int64
		acts         int
	}{{"time enough", false, webhooks.RecoverMost + more, 0, 2}, {"no time", true, webhooks.RecoverMost, more, 1},
		{"again", false, more, 0, 1}, {"nothing", false, 0, 0, 0}} {
		if try.acts == 2 || try.left > 0 {
			if _, err := pool.Exec(t.Context(), `DELETE FROM webhook_undelivered`); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), `INSERT INTO webhook_undelivered (company_id, id, at, phone_number, due,
				given_up_at)
				SELECT 1, 8 * n, now(), '', 'infinity', now() FROM generate_series(1, $1::bigint) n`,
				int64(webhooks.RecoverMost+more)); err != nil {
				t.Fatal(err)
			}
		}
		before, _, _ := audit.List(t.Context(), pool, audit.Filter{}, 0, 100)
		ctx := t.Context()
		if try.short {
			ctx = almost{ctx}
		}
		resent, left, err := by.Recover(ctx, 1, time.Now().Add(-time.Hour))
		if err != nil || resent != try.resent || left != try.left {
			t.Errorf("%s: %d resent, %d left, %v", try.name, resent, left, err)
		}
		if after, _, err := audit.List(t.Context(), pool, audit.Filter{}, 0, 100); err != nil ||
			len(after)-len(before) != try.acts {
			t.Errorf("%s: %d acts, %v", try.name, len(after)-len(before), err)
		}
	}
}
