package throttle

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// panicking is a client whose calls panic.
type panicking struct{ redis.UniversalClient }

func (panicking) Pipeline() redis.Pipeliner { panic("no pipeline") }

// TestPanicEndsItsCallOnly: the API recovers a request's panic, and the requests after it are counted.
func TestPanicEndsItsCallOnly(t *testing.T) {
	th := New(panicking{}, Options{})
	for range 3 {
		done := make(chan any, 1)
		go func() {
			defer func() { done <- recover() }()
			th.Allow(t.Context(), 1)
		}()
		select {
		case got := <-done:
			if got == nil {
				t.Error("nothing panicked")
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a request waits for ever")
		}
	}
}
