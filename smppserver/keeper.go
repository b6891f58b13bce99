package smppserver

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"intumwa/accounts/keys"
	"intumwa/internal/postgres"
	"intumwa/smpp"
	"intumwa/smppserver/binds"
)

const (
	renewEvery    = 2 * time.Second // a fifth of binds.Lease
	renewWithin   = 5 * time.Second
	unbindWithin  = 2 * time.Second // for a bind that must end
	sweepEvery    = 10 * time.Second
	sweepWithin   = 30 * time.Second
	revokedReason = "its key may not bind any more"
	askedReason   = "a person ended it"
)

// Changed makes the keeper look at the binds at once. It handles notices about accounts and binds, and never blocks.
func (s *Server) Changed(string) { s.wakeKeeper() }

func (s *Server) wakeKeeper() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// keep renews the binds of this process, ends those that must end, and keeps the rates of their keys, until ctx ends.
func (s *Server) keep(ctx context.Context) {
	tick := time.NewTicker(s.renewEvery)
	defer tick.Stop()
	for {
		if err := s.renew(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("customers' binds could not be renewed; trying again", "event", "smpp_binds_not_renewed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.wake:
		}
	}
}

func (s *Server) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	counts, ids := map[int64]binds.Counts{}, map[int64]bool{}
	s.mu.Lock()
	for id, b := range s.bound {
		counts[id], ids[b.account] = countsOf(b.peer.Snapshot()), true
	}
	s.mu.Unlock()
	if len(counts) == 0 {
		s.apply(nil, nil, nil, nil)
		return nil
	}
	end, shares, err := s.deps.Binds.Renew(ctx, s.process, counts)
	if err != nil {
		return err
	}
	list := make([]int64, 0, len(ids))
	for id := range ids {
		list = append(list, id)
	}
	valid, err := s.deps.Holders.SMPPKeysOf(ctx, list)
	if err != nil {
		return err
	}
	s.apply(counts, end, shares, valid)
	return nil
}

// apply ends those of the binds looked at that must end, and keeps the limits of the keys. Nothing is known of a bind
// that came meanwhile.
func (s *Server) apply(looked map[int64]binds.Counts, end []int64, shares map[int64]binds.Share, valid []keys.Token) {
	known := make(map[int64]keys.Token, len(valid))
	for _, t := range valid {
		known[t.ID] = t
	}
	asked := make(map[int64]bool, len(end))
	for _, id := range end {
		asked[id] = true
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range looked {
		b, here := s.bound[id]
		if !here {
			continue
		}
		t, may := known[b.account]
		switch {
		case !may, len(t.Networks) == 0, !t.From(hostOf(b.peer.Login().Remote)):
			b.peer.Unbind(revokedReason, unbindWithin)
		case asked[id]:
			b.peer.Unbind(askedReason, unbindWithin)
		default:
			b.key = t
		}
	}
	for id := range s.keys {
		share, here := shares[id]
		switch t, may := known[id]; {
		case here && may && share.All > 0:
			s.keys[id].set(float64(t.TPS)*float64(share.Own)/float64(share.All), now)
		case !s.servesLocked(id) && s.keys[id].full(now): // else a new bind would begin with a burst
			delete(s.keys, id)
		}
	}
}

func (s *Server) servesLocked(key int64) bool {
	for _, b := range s.bound {
		if b.account == key {
			return true
		}
	}
	return false
}

func countsOf(snap smpp.PeerSnapshot) binds.Counts {
	c := binds.Counts{Submitted: int64(snap.Accepted), InFlight: snap.Requests, Unanswered: snap.InFlight,
		Refused: map[string]int64{}}
	for status, n := range snap.Refusals {
		if len(c.Refused) < refusalsMost {
			c.Refused[status.String()] = int64(n)
		}
	}
	return c
}

// refusalsMost is how many statuses of refusals a bind's row has.
const refusalsMost = 30

// sweep drops what waits too long, and measures the rest, until ctx ends.
func (s *Server) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("what waits for customers' binds could not be counted; trying again", "event", "smpp_waiting_not_counted",
				"error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Server) sweepOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	old, excess, err := s.deps.Binds.Drop(ctx, s.opts.ReceiptLife, s.opts.ReceiptsMost)
	s.metrics.dropped.WithLabelValues(droppedOld).Add(float64(old))
	s.metrics.dropped.WithLabelValues(droppedMany).Add(float64(excess))
	if old+excess > 0 {
		s.log.Warn("receipts for customers' binds are dropped: no bind took them", "event", "smpp_receipts_dropped", "old",
			old, "too_many", strconv.FormatInt(excess, 10))
	}
	if err != nil {
		return err
	}
	waiting, err := s.deps.Binds.Waiting(ctx)
	if err != nil {
		return err
	}
	var usable []keys.Token // nobody can fetch what waits for other keys
	if len(waiting) > 0 {
		if usable, err = s.deps.Holders.SMPPKeysOf(ctx, slices.Collect(maps.Keys(waiting))); err != nil {
			return err
		}
	}
	number, oldest := int64(0), time.Duration(0)
	for _, key := range usable {
		q := waiting[key.ID]
		number += q.Number
		oldest = max(oldest, postgres.Now().Sub(q.Oldest))
	}
	s.metrics.waiting.Set(float64(number))
	s.metrics.oldest.Set(oldest.Seconds())
	return nil
}
