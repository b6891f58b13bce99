package smpp

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"
)

// endpoint is what a Bind and a Peer have in common: what their sessions need of their owner.
type endpoint struct {
	timers
	sends   command // what it sends through the window: submit_sm, or deliver_sm
	log     *slog.Logger
	pace    *pacer
	metrics *sessionMetrics
	tracers tracers
	class   func(Status) Class
	// requested handles a request of the peer that is not one of every session; false: there is no such request.
	requested func(s *session, h header, body []byte) bool
	onLate    func(key uint64, r Result) // may be nil

	window    atomic.Int64
	lastPDU   atomic.Int64 // Unix nanoseconds
	accepted  atomic.Uint64
	throttled atomic.Uint64
	allowance allowance
}

// timers are the times of Options that rule a session.
type timers struct {
	enquireLink, enquireTimeout, responseTimeout, unknownHold, writeTimeout, drainTimeout, unbindTimeout time.Duration
	// 0: no limit
	inactivity time.Duration
}

// shortest is the shortest time that the keeper measures.
func (t *timers) shortest() time.Duration {
	return min(t.enquireLink, t.enquireTimeout, t.responseTimeout, t.unknownHold, cmp.Or(t.inactivity, t.unknownHold))
}

// trace is Bind.Trace; link is the name of the link in the PDUs shown.
func (e *endpoint) trace(ctx context.Context, link string, show func(TracedPDU) error) error {
	t := &tracer{pdus: make(chan tracedBytes, traceBacklog)}
	e.tracers.change(func(list []*tracer) []*tracer { return append(list, t) })
	defer e.tracers.change(func(list []*tracer) []*tracer {
		return slices.DeleteFunc(list, func(other *tracer) bool { return other == t })
	})
	for {
		select {
		case <-ctx.Done():
			return nil
		case raw := <-t.pdus:
			pdu := describe(raw)
			pdu.Link, pdu.Dropped = link, int(t.dropped.Swap(0))
			if err := show(pdu); err != nil {
				return err
			}
		}
	}
}

// serves reports whether this end is the server.
func (e *endpoint) serves() bool { return e.sends == cmdDeliverSM }

// lastHeard is when the last PDU came; zero: never.
func (e *endpoint) lastHeard() time.Time {
	if at := e.lastPDU.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}
