package smpp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

var (
	errPeerUnbind = errors.New("the peer sent unbind")
	errDesync     = errors.New("the peer could not read our PDUs")
	errPeerState  = errors.New("the peer does not hold the session for bound")
)

// read takes in PDUs until the stream ends. It never waits for the owner of a
// delivery, nor for the writer unless the peer asks much and reads nothing.
func (s *session) read() {
	for {
		h, body, err := s.frames.next()
		if err != nil {
			s.end(&closure{readReason(err), err})
			return
		}
		s.link.metrics.received(h.command, h.status)
		s.link.lastPDU.Store(s.heard.get().UnixNano())
		s.link.tracers.read(h, body)
		if why := s.handle(h, body); why != nil {
			s.end(why)
			return
		}
		if !h.command.response() {
			s.awaitControlRoom()
		}
	}
}

func readReason(err error) string {
	switch {
	case errors.Is(err, errPeerClose), errors.Is(err, io.ErrUnexpectedEOF):
		return reasonPeerClosed
	case errors.Is(err, errNotSMPP), errors.Is(err, errLength), errors.Is(err, errStalled):
		return reasonProtocol
	}
	return reasonReadError
}

// handle does what one PDU asks for. A closure ends the session.
func (s *session) handle(h header, body []byte) *closure {
	if tell := s.link.opts.OnCongestion; tell != nil && h.command.response() && len(body) > 4 {
		if state, ok := congestionOf(h.command, body); ok {
			tell(state)
		}
	}
	switch h.command {
	case cmdSubmitSMResp:
		return s.answered(h, messageID(body))
	case cmdGenericNack:
		return s.nacked(h)
	case cmdDeliverSM, cmdDataSM:
		s.accept(h, body)
	case cmdEnquireLink:
		s.send(header{cmdEnquireLinkResp, StatusOK, h.sequence})
	case cmdEnquireLinkResp:
		s.probeAnswered(h.sequence)
	case cmdUnbind:
		s.unbindAsked(h.sequence)
	case cmdUnbindResp:
		s.mu.Lock()
		s.unbound = true
		s.changed.Broadcast()
		s.mu.Unlock()
	case cmdAlertNotification, cmdOutbind: // want no answer
	default:
		if h.command.response() {
			s.link.metrics.unmatched.Inc() // never answer an answer
		} else {
			s.send(header{cmdGenericNack, StatusInvCmdID, h.sequence})
		}
	}
	return nil
}

// answered settles the submit that a submit_sm_resp answers.
func (s *session) answered(h header, id string) *closure {
	if !s.settle(h, id) {
		s.link.metrics.unmatched.Inc()
		return nil
	}
	if h.status == StatusInvBindState {
		return &closure{reasonNotBound, errPeerState}
	}
	return nil
}

// nacked handles a generic_nack: the answer to a submit or a probe, or, with a
// sequence_number of nobody's, a sign that the peer lost its place in our
// stream.
func (s *session) nacked(h header) *closure {
	if s.settle(h, "") || s.probeAnswered(h.sequence) {
		return nil
	}
	s.link.metrics.unmatched.Inc()
	if h.sequence == 0 && (h.status == StatusInvCmdLen || h.status == StatusInvMsgLen) {
		return &closure{reasonProtocol, fmt.Errorf("%w: generic_nack %s", errDesync, h.status)}
	}
	return nil
}

// settle gives the submit with this sequence_number its result; false when
// there is none.
func (s *session) settle(h header, id string) bool {
	s.mu.Lock()
	p := s.pending[h.sequence]
	if p == nil {
		late, known := s.given.take(h.sequence)
		s.mu.Unlock()
		if known {
			s.settleLate(h, id, late)
		}
		return known
	}
	if p.written.IsZero() { // nobody answers what was not sent
		s.mu.Unlock()
		return false
	}
	s.takeLocked(h.sequence)
	s.mu.Unlock()

	l := s.link
	r := Result{Outcome: Accepted, MessageID: id, Latency: max(s.heard.get().Sub(p.written), 0)}
	if h.status != StatusOK || h.command == cmdGenericNack {
		r.Outcome, r.Status, r.MessageID = Rejected, h.status, ""
		r.Err = &StatusError{Command: cmdSubmitSM.String(), Status: h.status}
		l.totals.rejected.Add(1)
		if l.class(h.status) == ClassThrottled {
			l.totals.throttled.Add(1)
			l.metrics.throttled.Inc()
		}
	} else {
		l.totals.accepted.Add(1)
	}
	if p.overdue {
		l.totals.late.Add(1)
		l.metrics.late.Inc()
	}
	l.metrics.answered(r)
	p.finish(r)
	return true
}

// inbound is a deliver_sm or data_sm on its way to Options.Deliver.
type inbound struct {
	session  *session
	header   header
	body     []byte
	received time.Time
	cost     int64 // Link.owe
}

// accept passes a deliver_sm on, or refuses it when too many are unanswered.
func (s *session) accept(h header, body []byte) {
	l := s.link
	cost, room := int64(0), false
	if !s.refusing.Load() {
		cost, room = l.owe(len(body))
	}
	if !room {
		l.totals.refused.Add(1)
		l.metrics.refused.Inc()
		s.send(header{h.command | responseBit, StatusMsgQueueFull, h.sequence}, 0)
		return
	}
	s.owed.Add(1)
	l.inbound <- inbound{s, h, bytes.Clone(body), s.heard.get(), cost} // has room for all that are unanswered
}

// deliver decodes deliveries and hands them to their owner, one at a time,
// until the link stops. One whose session has ended meanwhile is handed over
// all the same: what the carrier told us is not thrown away.
func (l *Link) deliver() {
	for in := range l.inbound {
		d, err := decodeDelivery(in.header.command, in.body, in.received)
		if err != nil {
			l.refuseMalformed(in, err)
			continue
		}
		if d.broken != nil {
			l.metrics.malformed.Inc()
			if n, due := l.brokenSeen.Due(time.Now()); due {
				l.opts.Log.Warn("receipt taken out of a broken delivery", "command", in.header.command.String(), "count", n, "error", d.broken)
			}
		}
		d.session, d.header, d.cost = in.session, in.header, in.cost
		l.totals.delivered.Add(1)
		l.opts.Deliver(d)
	}
}

func (l *Link) refuseMalformed(in inbound, err error) {
	l.metrics.malformed.Inc()
	if n, due := l.refusedSeen.Due(time.Now()); due {
		l.opts.Log.Warn("undecodable delivery refused", "command", in.header.command.String(), "count", n, "error", err)
	}
	status := StatusSysErr
	var bad *decodeError
	if errors.As(err, &bad) {
		status = bad.status
	}
	in.session.respond(in.header, status, in.cost)
}

// respond answers an accepted delivery; the message_id is one NUL.
func (s *session) respond(h header, status Status, cost int64) {
	s.link.settled(cost)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendLocked(header{h.command | responseBit, status, h.sequence}, 0)
	s.owed.Add(-1) // behind the answer, that no unbind overtakes it
	if s.draining {
		s.changed.Broadcast()
	}
}
