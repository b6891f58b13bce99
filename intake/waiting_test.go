package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"intumwa/internal/postgres"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/sms"
)

// standbyWorld is a process with a database of its own whose standby can go away.
func standbyWorld(t *testing.T, credits int64) (*district, *Intake, *testenv.Standby) {
	t.Helper()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	d := newDistrictOn(t, pool, credits)
	rdb, prefix := testenv.Redis(t)
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Default: true}})
	if err != nil {
		t.Fatal(err)
	}
	in := New(pool, d.holders, d.testNumbers, messages.New(pool), queue.New(rdb, queue.Options{Prefix: prefix}), routes,
		Options{TestSender: "TEST", TestQuota: 5})
	running, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = in.Run(running) }()
	t.Cleanup(func() { end(); <-ended })
	return d, in, testenv.NewStandby(t, server)
}

// aged is a request that has been waiting for age.
func (d *district) aged(t *testing.T, in *Intake, text string, age time.Duration) *request {
	t.Helper()
	r, err := in.single(t.Context(), d.principal, d.request(text, nil), kindSingle)
	if err != nil {
		t.Fatal(err)
	}
	r.done, r.came = make(chan struct{}), time.Now().Add(-age)
	return r
}

// TestWaitsBehindAHangingCommit: requests that arrive while a COMMIT hangs are refused in time, and never accepted
// later. Only the group whose COMMIT was under way has an unknown outcome. When the standby is back, requests that
// still wait are accepted.
func TestWaitsBehindAHangingCommit(t *testing.T) {
	t.Parallel()
	d, in, standby := standbyWorld(t, 1000)
	standby.Away()
	type outcome struct {
		err  error
		took time.Duration
	}
	send := func() <-chan outcome {
		answered := make(chan outcome, 1)
		go func() {
			start := time.Now()
			_, err := in.Send(context.Background(), d.principal, d.request("x", nil))
			answered <- outcome{err, time.Since(start)}
		}()
		return answered
	}
	first := send()
	standby.Until("its commit waits for the standby", func() bool { return standby.Waiting() == 1 }, nil)
	var behind []<-chan outcome
	for range 600 { // more than a group
		behind = append(behind, send())
	}
	unknown := 0
	for _, answered := range append(behind, first) {
		got := <-answered
		switch {
		case !errors.Is(got.err, ErrUnavailable) || got.took > answerWithin+recheckGrace+20*time.Second:
			t.Fatalf("a request got %v after %s", got.err, got.took)
		case errors.Is(got.err, ErrOutcomeUnknown):
			unknown++
		}
	}
	if unknown != 1 {
		t.Errorf("%d requests with an unknown outcome, want that of the first group", unknown)
	}
	last := send()
	standby.Back()
	if got := <-last; got.err != nil {
		t.Errorf("when the standby is back: %v after %s", got.err, got.took)
	}
	standby.Until("the first one's COMMIT has ended", func() bool {
		var n int
		return d.pool.QueryRow(t.Context(), `SELECT count(*) FROM messages`).Scan(&n) == nil && n == 2
	}, nil)
	d.checkLedger(t, 998, 2) // the first one's COMMIT was under way
}

// TestTooOldToBegin: no attempt to commit begins for a request that has waited too long, whichever way it comes to it.
// A shorter wait is too long if the client has disconnected.
func TestTooOldToBegin(t *testing.T) {
	d := newDistrict(t, 100)
	in, _ := d.apart(t)
	for name, commit := range map[string]func([]*request){
		"in a group":              func(rs []*request) { in.committer.process(t.Context(), rs, groupLockWait) },
		"behind a locked balance": func(rs []*request) { in.committer.aside.take(t.Context(), rs, true) },
		"after a refused group":   func(rs []*request) { in.committer.finish(t.Context(), rs, ErrKeyInUse) },
	} {
		requests := []*request{d.aged(t, in, "old", answerWithin), d.aged(t, in, "new", -time.Minute),
			d.aged(t, in, "older", time.Minute)}
		left := make(chan struct{})
		close(left)
		requests[1].gone = left // a moment ago
		requests = append(requests, d.aged(t, in, "left", goneAfter))
		requests[3].gone = left
		commit(requests)
		for i, r := range requests {
			<-r.done
			if refused := errors.Is(r.err, ErrUnavailable); refused == (i == 1) || r.admitted != (i == 1) {
				t.Errorf("%s: request %d: admitted %v, %v", name, i, r.admitted, r.err)
			}
		}
	}
	d.checkLedger(t, 97, 3)
}

// TestQueueIsBounded: a request that finds the queue full is refused at once.
func TestQueueIsBounded(t *testing.T) {
	d := newDistrict(t, 100)
	in, _ := d.apart(t)
	in.committer.turn <- struct{}{} // a group that hangs
	defer func() { <-in.committer.turn }()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	full := make(chan error, 1)
	for i := range cap(in.committer.requests) + 2 { // the first is with run
		waiting.Go(func() {
			if err := in.committer.submit(ctx, d.aged(t, in, fmt.Sprint(i), 0)); ctx.Err() == nil {
				full <- err
			}
		})
	}
	select {
	case err := <-full:
		if !errors.Is(err, errQueueFull) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("no request was refused")
	}
}

// TestLeftBehindAHangingCommit: after a COMMIT without an answer, a request whose caller has given up refuses none of
// those that are to be committed with it.
func TestLeftBehindAHangingCommit(t *testing.T) {
	d := newDistrict(t, 100)
	in, _ := d.apart(t)
	for name, state := range map[string]int32{"its caller has left": answered, "its caller is about to leave": waiting} {
		left, now := d.aged(t, in, "left", answerWithin), d.aged(t, in, "now", 0)
		if left.state.Store(state); state == answered {
			close(left.done)
		}
		in.committer.hanging.Store(true)
		in.committer.process(t.Context(), []*request{left, now}, groupLockWait)
		if <-now.done; now.err != nil || !now.admitted {
			t.Errorf("%s: the other is admitted %v, %v", name, now.admitted, now.err)
		}
		<-left.done
	}
	d.checkLedger(t, 98, 2)
}
