package dispatcher

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/links"
)

// listedWith makes a member and another dispatcher that it has seen once. listed does a renewal
// and a heartbeat, and reports whether the other still has its row.
func (b *bench) listedWith() (other int64, listed func() bool) {
	b.Helper()
	ctx := b.Context()
	b.d.core.Opts.DeadAfter = time.Minute
	b.d.member = b.d.newMember()
	if err := b.d.member.Register(ctx); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(b.d.member.Leave)
	b.Cleanup(b.d.member.Stop)
	other = core.NewID()
	b.exec(`INSERT INTO dispatchers (id, name) VALUES ($1, 'other')`, other)
	listed = func() bool {
		b.Helper()
		if err := errors.Join(b.d.member.Renew(ctx), b.d.member.Heartbeat(ctx)); err != nil {
			b.Fatal(err)
		}
		return b.count(`SELECT count(*) FROM dispatchers WHERE id = $1`, other) == 1
	}
	if !listed() {
		b.Fatal("a process that has just come removed it")
	}
	return other, listed
}

// heardAgo sets when a dispatcher's last renewal was seen.
func heardAgo(m *links.Member, id int64, ago time.Duration) {
	m.Others[id] = core.Sight{Mark: m.Others[id].Mark, Since: time.Since(core.ProcessStart) - ago}
}

// TestSilence: a dispatcher is dead when this process has seen no renewal for DeadAfter, whatever
// the time of its last renewal by the database's clock. Its leases end with it.
func TestSilence(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, listed := b.listedWith()
	b.exec(`INSERT INTO leases (name, holder) VALUES ('link x', $1)`, other)
	m := b.d.member
	for _, by := range []string{"-1 hour", "1 hour", "-1 day", "5 seconds"} { // each is a renewal, after the clock was set
		heardAgo(m, other, 2*time.Minute)
		b.exec(`UPDATE dispatchers SET seen_at = now() + $1::interval WHERE id = $2`, by, other)
		if !listed() {
			t.Fatalf("it lives and was removed: its clock is %s off", by)
		}
	}
	heardAgo(m, other, 50*time.Second)
	if !listed() {
		t.Fatal("it was removed too soon")
	}
	b.exec(`UPDATE dispatchers SET seen_at = now() + interval '1 hour' WHERE id = $1`, other)
	if !listed() {
		t.Fatal("it lives and was removed")
	}
	heardAgo(m, other, 61*time.Second)
	if listed() {
		t.Error("its last renewal is in the future, and it is never removed")
	}
	if b.count(`SELECT count(*) FROM leases WHERE name = 'link x'`) != 0 {
		t.Error("a dead dispatcher has a lease")
	}
	if !b.d.recovery.Deaths.Unfreed.Load() || len(m.Wake) != 1 {
		t.Error("neither the tasks nor the links are woken")
	}
}

// TestSilenceEndsInTime: a dispatcher that renews while another is removing it stays.
func TestSilenceEndsInTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, stays := b.listedWith()
	m := b.d.member
	heardAgo(m, other, 61*time.Second)
	seen := []core.Listed{{ID: other, Mark: m.Others[other].Mark}}
	b.exec(`UPDATE dispatchers SET seen_at = now() + interval '1 second' WHERE id = $1`, other)
	if err := m.Look(t.Context(), seen, time.Since(core.ProcessStart), false); err != nil {
		t.Fatal(err)
	}
	if !stays() {
		t.Error("it has renewed and was removed")
	}
}

// TestSilenceOfAll: a process that could not renew for a while gives the others time to renew
// before it takes them for dead.
func TestSilenceOfAll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, listed := b.listedWith()
	m := b.d.member
	heardAgo(m, other, 2*time.Minute)
	m.Beat.Store(int64(time.Since(core.ProcessStart) - 2*time.Minute)) // the database was down so long
	if !listed() {
		t.Error("the first to come back removed it")
	}
	heardAgo(m, other, 50*time.Second)
	if !listed() {
		t.Error("it was removed before it had its time")
	}
	heardAgo(m, other, 61*time.Second)
	if listed() {
		t.Error("it had its time, and is on the list still")
	}
}

// TestReplacedIsNotFresh: a process whose row was removed is not fresh. The time that it has seen a
// carrier down counts from its new registration.
func TestReplacedIsNotFresh(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.listedWith()
	m := b.d.member
	m.Heard.Store(-int64(time.Hour))
	if d := m.BindingFor(); d < time.Hour || !m.Fresh() {
		t.Fatalf("it has held binds for %v", d)
	}
	fresh, cancel := m.WhileFresh(t.Context())
	defer cancel()
	b.exec(`DELETE FROM dispatchers WHERE id = $1`, m.ID.Load())
	if err := m.Renew(t.Context()); !errors.Is(err, core.ErrReplaced) || m.Fresh() {
		t.Fatalf("it was replaced: %v", err)
	}
	<-fresh.Done()
	if _, err := m.Acquire(t.Context(), "x"); err == nil {
		t.Error("it acquired a lease")
	}
	if err := m.Register(t.Context()); err != nil || !m.Fresh() {
		t.Fatal(err)
	}
	if d := m.BindingFor(); d > time.Minute {
		t.Errorf("it has held binds for %v", d)
	}
}

// TestRegisterUntilTheEnd: a registration that fails until ctx ends returns an error.
func TestRegisterUntilTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.d.member.Register(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it is registered as %d: %v", b.d.member.ID.Load(), err)
	}
}

// TestAcquire: a lease has one holder until it resigns the lease or leaves.
func TestAcquire(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var both [2]*core.Leases
	for i := range both {
		both[i] = core.NewLeases(b.pool, b.d.core.Log, b.d.core.Opts)
		if err := both[i].Register(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	one, two := both[0], both[1]
	acquires := func(l *core.Leases, want ...string) {
		t.Helper()
		held, err := l.Acquire(t.Context(), "a", "b")
		if slices.Sort(held); err != nil || !slices.Equal(held, want) {
			t.Errorf("it has %q, want %q; %v", held, want, err)
		}
	}
	acquires(one, "a", "b")
	acquires(one, "a", "b")
	acquires(two)
	two.Resign(t.Context(), "a") // another's lease
	acquires(two)
	one.Resign(t.Context(), "a")
	acquires(two, "a")
	acquires(one, "b")
	one.Leave()
	acquires(two, "a", "b")
}

// TestIDAfterPromotion: a standby that is promoted without the last transactions may not know a dispatcher. No other
// gets its id, so it notices at its next renewal that it was replaced.
func TestIDAfterPromotion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.d.core.Opts.DeadAfter = time.Minute // half of it is the time of a renewal
	one, two := core.NewLeases(b.pool, b.d.core.Log, b.d.core.Opts), core.NewLeases(b.pool, b.d.core.Log, b.d.core.Opts)
	if err := one.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.exec(`TRUNCATE dispatchers RESTART IDENTITY CASCADE`)
	if err := two.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := one.Renew(t.Context()); !errors.Is(err, core.ErrReplaced) || one.Fresh() {
		t.Errorf("it has renewed another's row %d: %v", two.ID.Load(), err)
	}
	if one.ID.Load() <= 0 || two.ID.Load() <= 0 {
		t.Errorf("ids %d and %d", one.ID.Load(), two.ID.Load())
	}
}
