package intake

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// The first process dies between its commit and its response: the client repeats the request at another process and
// gets the response that it missed.
func TestCrashBetweenCommitAndAnswer(t *testing.T) {
	d := newDistrict(t, 100)
	key := &Key{Name: "k", Request: [32]byte{1}}
	first, err := d.process(t).Send(t.Context(), d.principal, d.request("x", key))
	if err != nil {
		t.Fatal(err)
	}
	second := d.process(t)
	again, err := second.Send(t.Context(), d.principal, d.request("x", key))
	if err != nil || !again.Replayed || string(again.Body) != string(first.Body) {
		t.Errorf("%s, replayed %v, %v; first %s", again.Body, again.Replayed, err, first.Body)
	}
	if _, err := second.Send(t.Context(), d.principal, d.request("y", &Key{Name: "k", Request: [32]byte{2}})); !errors.Is(
		err, ErrKeyReused) {
		t.Errorf("another request: %v", err)
	}
	if body, known, err := second.Answered(t.Context(), d.principal.UserID, "k"); err != nil || !known ||
		string(body) != string(first.Body) {
		t.Errorf("Answered: %s, known %v, %v", body, known, err)
	}
	for _, other := range []struct {
		user int64
		key  string
	}{{d.principal.UserID + 1, "k"}, {d.principal.UserID, "l"}} {
		if body, known, err := second.Answered(t.Context(), other.user, other.key); err != nil || known {
			t.Errorf("another's or no answer: %s, %v", body, err)
		}
	}
	d.checkLedger(t, 99, 1)
}

// Two processes get the same requests at the same time, in opposite order.
func TestSameKeysInTwoProcesses(t *testing.T) {
	d := newDistrict(t, 10_000)
	processes := []*Intake{d.process(t), d.process(t)}
	const keys, copies = 40, 2
	type outcome struct {
		body     string
		replayed bool
		err      error
	}
	outcomes := make([][]outcome, keys)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range keys * copies * len(processes) {
		k := i % keys
		if i/keys%2 == 1 {
			k = keys - 1 - k
		}
		wg.Go(func() {
			key := &Key{Name: fmt.Sprint(k), Request: [32]byte{byte(k)}}
			answer, err := processes[i/keys%len(processes)].Send(t.Context(), d.principal, d.request(fmt.Sprint(k), key))
			mu.Lock()
			defer mu.Unlock()
			outcomes[k] = append(outcomes[k], outcome{string(answer.Body), answer.Replayed, err})
		})
	}
	wg.Wait()
	for k, all := range outcomes {
		first := ""
		for _, o := range all {
			switch {
			case errors.Is(o.err, ErrKeyInUse):
			case o.err != nil:
				t.Errorf("key %d: %v", k, o.err)
			case first == "":
				first = o.body
			case o.body != first:
				t.Errorf("key %d has two answers: %s, %s", k, first, o.body)
			}
		}
		if first == "" {
			t.Errorf("key %d was never answered", k)
		}
	}
	d.checkLedger(t, 10_000-keys, keys)
}

// Requests whose keys another process locks for long get 409 and delay no others.
func TestKeysLockedElsewhere(t *testing.T) {
	d := newDistrict(t, 100)
	in := d.process(t)
	const locked = 200
	d.lockRows(t, `INSERT INTO idempotency_keys (user_id, key, request) SELECT $1, 'locked ' || n, '\x01'
		FROM generate_series(1, $2) n`, d.principal.UserID, locked)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range locked {
		wg.Go(func() {
			if _, err := in.Send(t.Context(), d.principal, d.request("x", &Key{Name: fmt.Sprint("locked ", i+1)})); !errors.Is(
				err, ErrKeyInUse) {
				t.Errorf("locked key %d: %v", i, err)
			}
		})
	}
	for i := range 5 {
		wg.Go(func() {
			if _, err := in.Send(t.Context(), d.principal, d.request("x", &Key{Name: fmt.Sprint(i)})); err != nil {
				t.Errorf("key %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(began); took > locked*groupLockWait*3/4 {
		t.Errorf("all waited %v for %d keys", took, locked)
	}
	d.checkLedger(t, 95, 5)
}
