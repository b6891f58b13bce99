package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// groups commits groups of requests: whole, in parts when the database refuses one, and aside when a balance is locked.
type groups struct {
	*writer
	aside   *aside
	doubts  sync.WaitGroup // groups whose COMMIT got no response
	hanging atomic.Bool    // a COMMIT got no response, and awaitCommits has not seen one succeed since
}

func newGroups(w *writer) *groups {
	g := &groups{writer: w}
	g.aside = newAside(w.core, func(ctx context.Context, group []*request) {
		tried, err := g.tryAside(ctx, group)
		g.finish(ctx, tried, err)
	})
	return g
}

// process commits requests together. It sets those aside that would wait longer than patience for a locked row.
func (g *groups) process(ctx context.Context, requests []*request, patience time.Duration) {
	requests, err := g.try(ctx, requests, patience)
	if balanceLocked(err) {
		g.setAside(ctx, requests)
		return
	}
	g.finish(ctx, requests, err)
}

// alone commits a request that has work of its own first, when it has a turn.
func (g *groups) alone(ctx context.Context, r *request) {
	late := time.NewTimer(beginWithin - time.Since(r.came))
	defer late.Stop()
	select {
	case g.turns <- struct{}{}:
		defer func() { <-g.turns }()
		g.process(ctx, []*request{r}, groupLockWait)
	case <-late.C:
		r.answer(errWaitedTooLong)
	}
}

func balanceLocked(err error) bool { return postgres.Locked(err) && !errors.Is(err, ErrKeyInUse) }

// setAside sets requests aside that met a lock for longer than a group may wait. If they have several payers, it tries
// halves of them first, briefly, to commit those whose balance is free.
func (g *groups) setAside(ctx context.Context, requests []*request) {
	payer := requests[0].payer()
	if !slices.ContainsFunc(requests, func(r *request) bool { return r.payer() != payer }) {
		g.aside.take(ctx, requests, true)
		return
	}
	half := len(requests) / 2
	for _, some := range [][]*request{requests[:half], requests[half:]} {
		if some = g.aside.take(ctx, some, false); len(some) > 0 { // a balance that was found locked delays no second attempt
			g.process(ctx, some, groupLockWait/10)
		}
	}
}

// tryAside tries a group when it has a connection and its locks, for at most the life of its first request.
func (g *groups) tryAside(ctx context.Context, group []*request) (tried []*request, err error) {
	patience := func() time.Duration { return max(groupLockWait, asideLife-time.Since(group[0].came)) }
	slot := time.NewTimer(patience())
	defer slot.Stop()
	select {
	case g.aside.slots <- struct{}{}:
	case <-slot.C:
		return group, errBalanceLocked
	}
	defer func() { <-g.aside.slots }()
	tried, err = g.try(ctx, group, patience())
	if balanceLocked(err) {
		g.opts.Log.Warn("requests refused: another transaction has locked the balance that pays", "event", "balance_locked",
			"company_id", group[0].payer(), "requests", len(tried))
		return tried, errBalanceLocked
	}
	return tried, err
}

// try commits requests, and tries again when the database rolled them back in favour of another transaction. They wait
// at most patience for each lock. It returns the requests that the last attempt was made for: no attempt begins for one
// that has waited too long.
func (g *groups) try(ctx context.Context, requests []*request, patience time.Duration) (tried []*request, err error) {
	if g.hanging.Load() {
		if requests = inTime(requests); len(requests) == 0 {
			return nil, nil
		}
		if err := g.awaitCommits(requests); err != nil {
			return requests, err
		}
	}
	start := time.Now()
	err = postgres.Retry(context.WithoutCancel(ctx), func() (err error) {
		tried, err = g.commit(requests, patience)
		return err
	})
	if len(tried) > 0 {
		g.metrics.commits.Observe(time.Since(start).Seconds())
		g.metrics.perCommit.Observe(float64(len(tried)))
	}
	return tried, err
}

// awaitCommits waits until the database commits, if the last COMMIT got no response. Without its synchronous standby a
// COMMIT hangs, and takes effect in the end; requests that wait here are not in doubt.
func (g *groups) awaitCommits(requests []*request) error {
	ctx, cancel := context.WithTimeout(context.Background(), min(commitTimeout, timeLeft(requests)))
	defer cancel()
	if err := postgres.Confirmed(ctx, g.pool, func(pgx.Tx) error { return nil }); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	g.hanging.Store(false)
	return nil
}

// finish completes requests after an attempt. When the database refused the group, it tries smaller groups: a bad row,
// or a key that another process works on, fails its own request only, and a request that loses to other transactions
// too often takes no others along. Requests whose COMMIT got no response do not delay the others.
func (g *groups) finish(ctx context.Context, requests []*request, err error) {
	switch n := len(requests); {
	case n > 1 && (postgres.Refused(err) || errors.Is(err, ErrKeyInUse)):
		for _, r := range requests {
			// the group has waited already: a client may repeat hundreds of requests whose keys are in use
			g.process(ctx, []*request{r}, time.Millisecond)
		}
		return
	case n > 1 && postgres.GaveWay(err):
		g.opts.Log.Warn("group commit lost to other transactions repeatedly; retrying it in halves", "event",
			"group_commit_halved", "requests", n, "error", err)
		g.process(ctx, requests[:n/2], groupLockWait)
		g.process(ctx, requests[n/2:], groupLockWait)
		return
	case postgres.GaveWay(err):
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if doubt, ok := errors.AsType[*inDoubt](err); ok {
		g.hanging.Store(true)
		g.doubts.Go(func() { respond(requests, g.resolve(ctx, requests, doubt)) })
		return
	}
	respond(requests, err)
}
