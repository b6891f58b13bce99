package throttle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"intumwa/internal/throttle"
)

// TestTurns: turns are limited per caller and in total, a wait ends after a second, and a
// turn stays taken for as long again as it lasted.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := throttle.NewTurns(3, 2)
		enter := func(caller int64, want error) (leave func()) {
			t.Helper()
			start := time.Now()
			leave, err := turns.Enter(t.Context(), caller)
			if !errors.Is(err, want) {
				t.Fatalf("caller %d: %v, want %v", caller, err, want)
			}
			if waited := time.Since(start); want != nil && waited != throttle.TurnWait {
				t.Fatalf("caller %d waited %v", caller, waited)
			}
			return leave
		}
		first, second := enter(1, nil), enter(1, nil)
		enter(1, throttle.ErrOwnTurns)
		third := enter(2, nil)
		enter(2, throttle.ErrAllTurns)
		third()
		third() // once is enough
		enter(2, nil)()

		time.Sleep(100 * time.Millisecond)
		first()
		second()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := turns.Enter(ended, 1); !errors.Is(err, throttle.ErrOwnTurns) {
			t.Fatalf("a turn that has ended can be taken again at once: %v", err)
		}
		start := time.Now() // it lasted more than the longest wait of a second
		leave, err := turns.Enter(t.Context(), 1)
		for errors.Is(err, throttle.ErrOwnTurns) && time.Since(start) < time.Minute {
			leave, err = turns.Enter(t.Context(), 1)
		}
		if err != nil || time.Since(start) > throttle.TurnWait {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		leave()
		time.Sleep(2 * throttle.TurnWait) // the last turn ends in the background
	})
}
