package dispatcher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestShare: workers take by weight while all of them want to; one that takes
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
		// that; weights count.
		light, heavy := new(linkWorker), new(linkWorker)
		s.join(light, 1)
		take(light, 10_000)
		s.join(heavy, 3)
		take(light, 10)
		take(heavy, 30)
		if l, h := s.workers[light].taken, s.workers[heavy].taken; h-l > shareSlack || l-h > shareSlack {
			t.Errorf("10 by weight 1 and 30 by weight 3 are %v and %v", l, h)
		}

		// One that is far ahead waits for one that is hungry, until that one
		// leaves.
		ahead, behind := new(linkWorker), new(linkWorker)
		s = newShare()
		s.join(ahead, 1)
		s.join(behind, 1)
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

		s.join(behind, 1)
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
