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

// read reads PDUs until the stream ends. It waits for the writer only if the peer sends
// many requests and reads no responses.
func (s *session) read() {
	for {
		h, body, err := s.frames.next()
		if err != nil {
			s.end(&closure{readReason(err), err})
			return
		}
		s.owner.metrics.received(h.command, h.status)
		s.owner.lastPDU.Store(s.heard.get().UnixNano())
		s.owner.tracers.read(h, body)
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

// handle processes one PDU. A returned closure ends the session.
func (s *session) handle(h header, body []byte) *closure {
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
		s.unbindRequested(h.sequence)
	case cmdUnbindResp:
		s.mu.Lock()
		s.unbound = true
		s.changed.Broadcast()
		s.mu.Unlock()
	case cmdAlertNotification, cmdOutbind: // have no response
	default:
		if h.command.response() {
			s.owner.metrics.unmatched.Inc() // a response gets no response
		} else {
			s.send(header{cmdGenericNack, StatusInvCmdID, h.sequence})
		}
	}
	return nil
}

// answered settles the submit of a submit_sm_resp.
func (s *session) answered(h header, id string) *closure {
	if !s.settle(h, id) {
		s.owner.metrics.unmatched.Inc()
		return nil
	}
	if h.status == StatusInvBindState {
		return &closure{reasonNotBound, errPeerState}
	}
	return nil
}

// nacked handles a generic_nack: the response to a submit or an enquire_link, or, with
// an unknown sequence_number, a sign that the peer cannot parse our stream any more.
func (s *session) nacked(h header) *closure {
	if s.settle(h, "") || s.probeAnswered(h.sequence) {
		return nil
	}
	s.owner.metrics.unmatched.Inc()
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
	if p.written.IsZero() { // it was not sent, so this cannot be its response
		s.mu.Unlock()
		return false
	}
	s.takeLocked(h.sequence)
	s.mu.Unlock()

	b := s.owner
	r := s.result(h, id, p.written)
	switch {
	case r.Outcome == Accepted:
		b.accepted.Add(1)
	case b.class(h.status) == ClassThrottled:
		b.throttled.Add(1)
		b.metrics.throttled.Inc()
	}
	if p.overdue {
		b.metrics.late.Inc()
	}
	b.metrics.answered(r)
	p.finish(r)
	return true
}

// result is the outcome in a response to a submit_sm.
func (s *session) result(h header, id string, written time.Time) Result {
	latency := max(s.heard.get().Sub(written), 0)
	if h.status != StatusOK || h.command == cmdGenericNack {
		return Result{Outcome: Rejected, Status: h.status, Latency: latency, Err: &StatusError{Command: cmdSubmitSM.String(), Status: h.status}}
	}
	return Result{Outcome: Accepted, MessageID: id, Latency: latency}
}

// accept passes a deliver_sm to the owner, or refuses it when too many are unanswered.
func (s *session) accept(h header, body []byte) {
	b := s.owner
	cost, room := int64(0), false
	if !s.refusing.Load() {
		cost, room = b.owe(len(body))
	}
	if !room {
		b.metrics.refused.Inc()
		s.send(header{h.command | responseBit, b.busy(), h.sequence}, 0)
		return
	}
	s.owed.Add(1)
	s.deliver(h, body, cost)
}

// deliver decodes a delivery and passes it to Options.Deliver.
func (s *session) deliver(h header, body []byte, cost int64) {
	b := s.owner
	var rules Reading
	if b.opts.Reading != nil {
		rules = b.opts.Reading()
	}
	d, err := rules.decode(h.command, bytes.Clone(body), s.heard.get())
	if err != nil {
		s.refuseMalformed(h, cost, err)
		return
	}
	if d.broken != nil {
		b.metrics.malformed.Inc()
		if n, due := b.brokenSeen.Due(time.Now()); due {
			b.opts.Log.Warn("malformed PDU; its text or receipt is used", "event", "malformed_receipt", "command", h.command.String(), "count", n, "error", d.broken)
		}
	}
	d.session, d.header, d.cost, d.BoundAt = s, h, cost, s.begun
	b.opts.Deliver(d)
}

func (s *session) refuseMalformed(h header, cost int64, err error) {
	b := s.owner
	b.metrics.malformed.Inc()
	if n, due := b.refusedSeen.Due(time.Now()); due {
		b.opts.Log.Warn("malformed PDU refused", "event", "malformed_pdu", "command", h.command.String(), "count", n, "error", err)
	}
	status := StatusSysErr
	var bad *decodeError
	if errors.As(err, &bad) {
		status = bad.status
	}
	s.respond(h, status, cost)
}

// respond sends the response to an accepted delivery; its message_id is one NUL. It returns the place of the response in
// the stream of control PDUs; 0 if the session has ended.
func (s *session) respond(h header, status Status, cost int64) (place uint64) {
	s.owner.settled(cost)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendLocked(header{h.command | responseBit, status, h.sequence}, 0)
	if s.closing == nil {
		place = s.controlQueued
	}
	s.owed.Add(-1) // after the response is queued, so that no unbind overtakes it
	if s.draining {
		s.changed.Broadcast()
	}
	return place
}
