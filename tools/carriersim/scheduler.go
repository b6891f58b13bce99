package carriersim

import (
	"context"
	"slices"
	"time"
)

// account is the sessions and deliveries of one system_id.
type account struct {
	ready     []*event   // deliveries that are due
	receivers []*session // sessions that may take them
	turn      int
}

// join lets a bound session receive deliveries; the caller holds c.mu.
func (c *Carrier) join(s *session) {
	a := c.account(s.systemID)
	a.receivers = append(a.receivers, s)
}

func (c *Carrier) account(systemID string) *account {
	a := c.accounts[systemID]
	if a == nil {
		a = &account{}
		c.accounts[systemID] = a
	}
	return a
}

// leave ends a session's bind, so it gets no more deliveries; the caller holds c.mu.
func (c *Carrier) leave(s *session) {
	s.mode = 0
	a := c.accounts[s.systemID]
	if a == nil {
		return
	}
	a.receivers = slices.DeleteFunc(a.receivers, func(other *session) bool { return other == s })
	if len(a.receivers) == 0 && len(a.ready) == 0 {
		delete(c.accounts, s.systemID)
	}
}

// forget ends a session and requeues its unanswered deliveries.
func (c *Carrier) forget(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(s)
	delete(c.sessions, s)
	s.mu.Lock()
	lost := make([]*event, 0, len(s.unacked))
	for _, e := range s.unacked {
		lost = append(lost, e)
	}
	s.unacked = nil
	s.mu.Unlock()
	slices.SortFunc(lost, func(a, b *event) int { return int(a.seq) - int(b.seq) })
	now := c.clock()
	for _, e := range lost {
		c.requeue(e, now)
	}
	c.wake()
}

// requeue queues a failed delivery for a later time, unless it is too old.
func (c *Carrier) requeue(e *event, due int64) {
	e.tries++
	if c.clock()-e.born > int64(c.opts.RedeliverFor) {
		c.stats.Discarded++
		c.pending--
		return
	}
	e.due = due
	c.queue.push(e)
}

// waiting reports whether deliveries wait for free receipt windows of s's account.
func (c *Carrier) waiting(s *session) bool {
	a := c.accounts[s.systemID]
	return a != nil && len(a.ready) > 0
}

// scheduler is the goroutine for everything that happens later.
func (c *Carrier) scheduler(ctx context.Context) {
	shortest := min(c.opts.AckTimeout, c.opts.BindTimeout, time.Second)
	if c.opts.IdleTimeout > 0 {
		shortest = min(shortest, c.opts.IdleTimeout)
	}
	patrol := max(shortest/4, 5*time.Millisecond)
	timer := time.NewTimer(patrol)
	defer timer.Stop()
	var patrolled int64
	touched := map[*session]struct{}{}
	for {
		c.mu.Lock()
		now := c.clock()
		more := c.runDue(now, touched)
		c.sendUnknownReceipts(now)
		c.deliverDue(now, touched)
		c.flood(now, touched) // last: it uses all remaining room
		if now-patrolled >= int64(patrol) {
			patrolled = now
			c.checkTimeouts(now, touched)
		}
		next := patrol - time.Duration(now-patrolled)
		if len(c.queue.heap) > 0 {
			next = min(next, time.Duration(c.queue.heap[0].due-now))
		}
		if c.faults.UnknownPerSec > 0 || c.faults.FloodPerSec > 0 {
			next = min(next, 10*time.Millisecond)
		}
		c.mu.Unlock()
		for s := range touched {
			s.flush()
		}
		clear(touched)
		if more {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		timer.Reset(max(next, 0))
		select {
		case <-ctx.Done():
			return
		case <-c.kick:
		case <-timer.C:
		}
	}
}

// runDue processes due events and reports whether more are due. It limits their number,
// so that c.mu is not held for long. However late it is, a delivery that is due before a
// response goes out first.
func (c *Carrier) runDue(now int64, touched map[*session]struct{}) (more bool) {
	ahead := false // deliveries are ahead of what comes next
	for range 2048 {
		e := c.queue.pop(now)
		if e == nil {
			return false
		}
		if e.session == nil {
			a := c.account(e.systemID)
			a.ready = append(a.ready, e)
			ahead = true
			continue
		}
		if ahead {
			c.deliverDue(now, touched)
			ahead = false
		}
		s := e.session
		delete(s.open, e.answers)
		s.send(e.pdu)
		touched[s] = struct{}{}
		c.runAfter(s, e.then)
	}
	return true
}

// deliverDue gives due deliveries to the sessions of their accounts, in turn.
func (c *Carrier) deliverDue(now int64, touched map[*session]struct{}) {
	if c.faults.HoldReceipts {
		return
	}
	for _, a := range c.accounts {
		for refused := 0; len(a.ready) > 0 && refused < len(a.receivers); {
			a.turn = (a.turn + 1) % len(a.receivers)
			s, e := a.receivers[a.turn], a.ready[0]
			if e.command == cmdAlert {
				s.send(e.pdu)
				a.ready = a.ready[1:]
				c.pending--
				touched[s] = struct{}{}
				continue
			}
			first := e.tries == 0
			if !s.deliver(e, now) {
				refused++
				continue
			}
			refused = 0
			a.ready = a.ready[1:]
			touched[s] = struct{}{}
			switch {
			case !first:
				c.stats.Redelivered++
			case e.mo:
				c.stats.MO++
			default:
				c.stats.Receipts++
			}
		}
	}
}

// checkTimeouts finds late responses, late binds and idle sessions.
func (c *Carrier) checkTimeouts(now int64, touched map[*session]struct{}) {
	for s := range c.sessions {
		idle := now - s.lastRead.Load()
		switch {
		case s.unbindUntil != 0 && now > s.unbindUntil,
			s.mode == 0 && s.unbindUntil == 0 && now-s.opened > int64(c.opts.BindTimeout),
			c.opts.IdleTimeout > 0 && idle > int64(c.opts.IdleTimeout):
			s.finishSoon()
			continue
		}
		if every := c.faults.EnquireEvery; every > 0 && s.mode != 0 && now-s.enquiredAt >= int64(every) {
			s.enquiredAt = now
			s.request(cmdEnquireLink)
			touched[s] = struct{}{}
		}
		s.mu.Lock()
		var late []*event
		for seq, e := range s.unacked {
			if now-e.sentAt > int64(c.opts.AckTimeout) {
				late = append(late, e)
				delete(s.unacked, seq)
				if len(s.overdue) > 10_000 {
					clear(s.overdue)
				}
				s.overdue[seq] = struct{}{}
			}
		}
		s.mu.Unlock()
		for _, e := range late {
			c.requeue(e, now)
		}
	}
}

// sendUnknownReceipts sends Faults.UnknownPerSec receipts with unknown ids.
func (c *Carrier) sendUnknownReceipts(now int64) {
	rate := int64(c.faults.UnknownPerSec)
	if rate <= 0 {
		c.unknownDue = now
		return
	}
	step := int64(time.Second) / rate
	c.unknownDue = max(c.unknownDue, now-int64(time.Second))
	for ; c.unknownDue <= now; c.unknownDue += max(step, 1) {
		for systemID, a := range c.accounts {
			if len(a.receivers) == 0 || len(a.ready) > 10_000 || c.pending >= c.opts.MaxPending {
				continue
			}
			c.lastID++
			r := receipt{
				number: c.lastID, ids: c.opts.IDs, notice: notice{state: Delivered}, style: c.opts.Receipts,
				src: []byte("25779000000"), dst: []byte("STRANGER"), srcTON: 5, dstTON: 1, dstNPI: 1, submitted: c.wall(now).UTC(),
				done: c.wall(now).UTC(),
			}
			c.queueReceipt(systemID, &r, now)
		}
	}
}

// queueDelivery queues a delivery; the caller holds c.mu.
func (c *Carrier) queueDelivery(e *event, now, due int64) {
	e.born, e.due = now, due
	c.pending++
	c.queue.push(e)
}
