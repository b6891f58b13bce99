package core

import (
	"testing"
	"time"
)

// TestQuota: an hour has no more rows than the quota, at most a tenth of them
// at once, and deleted rows make room.
func TestQuota(t *testing.T) {
	q, now := &Quota{}, time.Now()
	if n := q.Room(now, 100); n != 10 {
		t.Errorf("at first there is room for %d", n)
	}
	written := 0
	for end := now.Add(time.Hour); now.Before(end); now = now.Add(time.Second) {
		n := q.Room(now, 100)
		if n < 0 {
			t.Fatalf("room for %d", n)
		}
		q.Take(n)
		written += n
	}
	if written > 100 || written < 95 {
		t.Errorf("%d rows in an hour", written)
	}
	if n := q.Room(now, 100); n > 1 {
		t.Errorf("room for %d more", n)
	}
	q.Give(7)
	if n := q.Room(now, 100); n < 7 {
		t.Errorf("7 are gone, and there is room for %d", n)
	}
	q.Give(1000)
	if n := q.Room(now.Add(24*time.Hour), 100); n != 10 {
		t.Errorf("after a day there is room for %d", n)
	}
	q.Take(50) // a long message
	if n := q.Room(now, 1); n > 0 {
		t.Errorf("past it there is room for %d", n)
	}
}
