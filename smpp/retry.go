package smpp

import (
	"context"
	"time"
)

// Retry is where the attempts of a bind that does not come up have come to: another Bind, in
// another process perhaps, goes on from there (Options.Retry), and the carrier sees no more
// attempts than from one.
type Retry struct {
	Failures int           // attempts and binds that did not hold, in a row: the pauses grow with them
	In       time.Duration // until the next attempt; 0: it is due
}

// Failing is how a bind fares that may not come up.
type Failing struct {
	Up     time.Duration // for how long it has been bound; 0: it is not
	Down   time.Duration // for how long it has neither been bound nor been refused by the carrier, in this Run; 0: it is bound, or does not run
	Failed int           // attempts in that time that did not reach the carrier, or were not answered
	Trying bool          // an attempt is under way
	Retry  Retry
}

// attempts is what Failing is made of.
type attempts struct {
	up, down time.Time // since when it is bound, or the carrier was not heard; zero: it is not so
	failed   int
	trying   bool
	failures int
	next     time.Time // when the next attempt is due
}

// Failing returns how the bind fares.
func (b *Bind) Failing() Failing {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, now := &b.attempts, time.Now()
	f := Failing{Failed: at.failed, Trying: at.trying, Retry: Retry{Failures: at.failures, In: max(at.next.Sub(now), 0)}}
	if !at.up.IsZero() {
		f.Up = now.Sub(at.up)
	}
	if !at.down.IsZero() {
		f.Down = now.Sub(at.down)
	}
	return f
}

// begins returns what a Run starts from, and waits until its first attempt is due. Only the
// first Run goes on from Options.Retry.
func (b *Bind) begins(ctx context.Context) backoff {
	retry, first := b.retry, b.first
	b.retry.failures, b.first = 0, 0
	b.waits(retry.failures, first, func(a *attempts) { *a = attempts{down: time.Now()} })
	if first > 0 {
		pause(ctx, first)
	}
	return retry
}

// tries waits until another attempt may be made, if the last one reached nobody, and notes that it is.
func (b *Bind) tries(ctx context.Context) {
	b.mu.Lock()
	again := b.attempts.failed > 0
	b.mu.Unlock()
	if again && b.opts.Again != nil {
		b.opts.Again(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attempts.trying = ctx.Err() == nil
}

// holds notes that the bind is up.
func (b *Bind) holds(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attempts = attempts{up: now}
}

// waits notes what has happened, and when the next attempt is due.
func (b *Bind) waits(failures int, delay time.Duration, what func(*attempts)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what(&b.attempts)
	b.attempts.trying, b.attempts.failures, b.attempts.next = false, failures, time.Now().Add(delay)
}

func attemptFailed(a *attempts) { a.failed++ }

// carrierHeard is for a bind that was lost or refused.
func carrierHeard(a *attempts) { *a = attempts{down: time.Now()} }

// ends notes that no Run is under way.
func (b *Bind) ends() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attempts.up, b.attempts.down, b.attempts.trying = time.Time{}, time.Time{}, false
}
