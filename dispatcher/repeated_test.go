package dispatcher

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/internal/testenv"
)

// TestSettledOnce: a settlement whose COMMIT took effect but was not answered is settled
// again and changes nothing: no submit record is stored twice or forgotten, and a second carrier
// is still used.
func TestSettledOnce(t *testing.T) {
	t.Parallel()
	b, _ := newSecondBench(t)
	for name, c := range map[string]struct {
		ready   func(b *bench, m *core.InFlight) *core.InFlight // settled before
		settles func(b *bench, m *core.InFlight) settling.Settlement
		want    []string // the keys of the submit records
	}{
		"accepted": {
			settles: func(_ *bench, m *core.InFlight) settling.Settlement {
				return settling.Settlement{Results: []core.Result{accepted("a")(m, 1)}}
			},
			want: []string{"a"},
		},
		"accepted, and an earlier submit record without an answer": {
			ready: (*bench).again,
			settles: func(_ *bench, m *core.InFlight) settling.Settlement {
				return settling.Settlement{Results: []core.Result{accepted("a")(m, 1)}}
			},
			want: []string{"?", "a"},
		},
		"without an answer": {
			settles: func(_ *bench, m *core.InFlight) settling.Settlement {
				return settling.Settlement{Results: []core.Result{unanswered(m, 1)}}
			},
			want: []string{"?"},
		},
		"accepted late, one of two submit records": {
			ready: func(b *bench, m *core.InFlight) *core.InFlight {
				second := b.again(m)
				b.by(second, unanswered)
				return second
			},
			settles: func(_ *bench, m *core.InFlight) settling.Settlement {
				return settling.Settlement{Late: []settling.LateAnswer{late(m, 1, 1, "a")}}
			},
			want: []string{"?", "a"},
		},
		"given up, and accepted after all": {
			settles: func(_ *bench, m *core.InFlight) settling.Settlement {
				return settling.Settlement{Results: []core.Result{unanswered(m, 1)},
					Late: []settling.LateAnswer{late(m, 1, 1, "a")}}
			},
			want: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.cleared()
			m := b.begun(1)
			if c.ready != nil {
				m = c.ready(b, m)
			}
			line := &testenv.Line{}
			b.d.core.Hot = testenv.Unheard(t, b.pool, line)
			line.Lose()
			b.s.Settle(t.Context(), c.settles(b, m))
			b.d.core.Hot = b.pool
			if !line.Lost() {
				t.Fatal("no answer was lost")
			}
			b.clean()
			b.hasRecords(m, c.want...)
			if waits := b.count(`SELECT count(*) FROM outbox`) == 1; waits == slices.Contains(c.want, "a") {
				t.Errorf("it waits to be sent: %v", waits)
			}
		})
	}
}

// TestPutBackOnce: a message that was put back after a late refusal, and sent since, is not
// put back again when the refusal is settled again.
func TestPutBackOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *setup.Carrier) { c.OnAmbiguous = setup.AmbiguousAwaitReceipt })
	m := b.begun(1)
	b.by(m, unanswered)
	w := settling.Settlement{Late: []settling.LateAnswer{throttledLate(m, 1, 1)}}
	b.settle(w)
	b.exec(`UPDATE outbox SET due_at = now()`)
	b.by(b.claim(m.Msg.ID, 1), accepted("a"))
	w.Again = true // its COMMIT was not answered
	b.settle(w)
	b.hasRecords(m, "a")
	if n := b.count(`SELECT count(*) FROM outbox`); n != 0 {
		t.Error("it is to be sent once more")
	}
	b.clean()
}

// hasRecords checks the submit records of a message's segments, by key; "?" is unanswered.
func (b *bench) hasRecords(m *core.InFlight, want ...string) {
	b.Helper()
	rows, err := b.pool.Query(b.Context(), `SELECT left(key, 1) FROM segments WHERE message_id = $1 ORDER BY 1`, m.Msg.ID)
	if err != nil {
		b.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.Fatal(err)
	}
	if !slices.Equal(keys, want) {
		b.Errorf("submit records %q are stored, want %q", keys, want)
	}
}
