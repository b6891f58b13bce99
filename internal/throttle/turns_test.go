package throttle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns: turns are limited per caller and in total, a wait ends after a second, and a
// turn stays taken for as long again as it lasted. Nothing is kept of a caller without a turn.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(3, 2)
		enter := func(caller int64, want error) (leave func()) {
			t.Helper()
			start := time.Now()
			leave, err := turns.Enter(t.Context(), caller)
			if !errors.Is(err, want) {
				t.Fatalf("caller %d: %v, want %v", caller, err, want)
			}
			if waited := time.Since(start); want != nil && waited != TurnWait {
				t.Fatalf("caller %d waited %v", caller, waited)
			}
			return leave
		}
		first, second := enter(1, nil), enter(1, nil)
		enter(1, ErrOwnTurns)
		third := enter(2, nil)
		enter(2, ErrAllTurns)
		third()
		third() // once is enough
		enter(2, nil)()

		time.Sleep(100 * time.Millisecond)
		first()
		second()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := turns.Enter(ended, 1); !errors.Is(err, ErrOwnTurns) {
			t.Fatalf("a turn that has ended can be taken again at once: %v", err)
		}
		start := time.Now() // it lasted more than the longest wait of a second
		leave, err := turns.Enter(t.Context(), 1)
		for errors.Is(err, ErrOwnTurns) && time.Since(start) < time.Minute {
			leave, err = turns.Enter(t.Context(), 1)
		}
		if err != nil || time.Since(start) > TurnWait {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		leave()
		time.Sleep(2 * TurnWait) // the last turn ends in the background
		turns.mu.Lock()
		defer turns.mu.Unlock()
		if len(turns.callers) > 0 {
			t.Fatalf("%d callers without a turn are kept", len(turns.callers))
		}
	})
}
