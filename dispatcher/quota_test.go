package dispatcher

import (
	"testing"
	"time"
)

// TestQuota: an hour has no more rows than the quota, at most a tenth of them
// at once, and deleted rows make room.
func TestQuota(t *testing.T) {
	q, now := &quota{}, time.Now()
	if n := q.room(now, 100); n != 10 {
		t.Errorf("at first there is room for %d", n)
	}
	written := 0
	for end := now.Add(time.Hour); now.Before(end); now = now.Add(time.Second) {
		n := q.room(now, 100)
		if n < 0 {
			t.Fatalf("room for %d", n)
		}
		q.take(n)
		written += n
	}
	if written > 100 || written < 95 {
		t.Errorf("%d rows in an hour", written)
	}
	if n := q.room(now, 100); n > 1 {
		t.Errorf("room for %d more", n)
	}
	q.give(7)
	if n := q.room(now, 100); n < 7 {
		t.Errorf("7 are gone, and there is room for %d", n)
	}
	q.give(1000)
	if n := q.room(now.Add(24*time.Hour), 100); n != 10 {
		t.Errorf("after a day there is room for %d", n)
	}
	q.take(50) // a long message
	if n := q.room(now, 1); n > 0 {
		t.Errorf("past it there is room for %d", n)
	}
}
