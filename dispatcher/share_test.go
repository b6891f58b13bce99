package dispatcher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestShare: workers take evenly while all of them want to; one that takes
// nothing holds nobody up.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShare()
		ctx, cancel := context.WithCancel(t.Context())
		take := func(w *linkWorker, n int) {
			t.Helper()
			done, err := s.turn(ctx, w)
			if err != nil {
				t.Fatal(err)
			}
			done(n)
		}
		// Alone it takes what it wants, and whoever joins does not catch up on
		// that.
		first, second := new(linkWorker), new(linkWorker)
		s.join(first)
		take(first, 10_000)
		s.join(second)
		take(first, 10)
		take(second, 10)
		if a, b := s.workers[first].taken, s.workers[second].taken; a != b {
			t.Errorf("10 each are %v and %v", a, b)
		}

		// One that is far ahead waits for one that is hungry, until that one
		// leaves.
		ahead, behind := new(linkWorker), new(linkWorker)
		s = newShare()
		s.join(ahead)
		s.join(behind)
		done, err := s.turn(ctx, ahead)
		if err != nil {
			t.Fatal(err)
		}
		done(10 * shareSlack)
		hungry, err := s.turn(ctx, behind)
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error)
		go func() {
			done, err := s.turn(ctx, ahead)
			if err == nil {
				done(0)
			}
			waited <- err
		}()
		synctest.Wait()
		select {
		case err := <-waited:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		s.leave(behind)
		if err := <-waited; err != nil {
			t.Error(err)
		}
		hungry(5)

		s.join(behind)
		done, _ = s.turn(ctx, ahead)
		done(10 * shareSlack)
		if hungry, err = s.turn(ctx, behind); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := s.turn(ctx, ahead)
			waited <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		hungry(0)
	})
}
