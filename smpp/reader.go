package smpp

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
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
			if s.owner.serves() && errors.Is(err, errLength) {
				s.nackLength()
			}
			s.end(&closure{readReason(err), err})
			return
		}
		if h.command != cmdEnquireLinkResp && s.owner.inactivity > 0 {
			s.active.set(s.heard.get())
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
		if s.owner.serves() {
			s.rest()
		}
	}
}

// maxUseless is how many PDUs a second a server reads of one peer which are of no use: enquire_link, refused requests,
// unknown PDUs, responses to nothing.
const maxUseless = 1000

// rest pauses the reader for the rest of a second in which the peer has sent maxUseless. Requests that are accepted,
// and responses to ours, do not count; they are taken off again.
func (s *session) rest() {
	if s.useless.Add(1) < maxUseless {
		return
	}
	if wait := time.Until(s.rested.Add(time.Second)); wait > 0 {
		select {
		case <-s.dead:
		case <-time.After(wait):
		}
	}
	s.rested = time.Now()
	s.useless.Store(0)
}

// nackLength tells the peer that its stream cannot be read any more.
func (s *session) nackLength() {
	s.mu.Lock()
	s.drainLocked()
	s.sendLocked(header{cmdGenericNack, StatusInvCmdLen, 0})
	s.mu.Unlock()
	s.await(unbindGrace, func() bool { return len(s.control) == 0 && s.writerIdle })
	s.farewell()
}

// farewell lets the peer read our last PDU: a connection that is closed while bytes of the peer are unread is reset,
// and what the peer has not read yet is lost. The caller is the only reader.
func (s *session) farewell() {
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() != nil {
		// a wrapped connection lacks it
		return
	}
	if s.conn.SetReadDeadline(time.Now().Add(unbindGrace)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, s.conn) // until the peer closes
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
	case s.owner.sends | responseBit:
		return s.answered(h, messageID(body))
	case cmdGenericNack:
		return s.nacked(h)
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
		switch {
		case h.command.response():
			s.owner.metrics.unmatched.Inc() // a response gets no response
		case !s.owner.requested(s, h, body):
			s.send(header{cmdGenericNack, StatusInvCmdID, h.sequence})
		}
	}
	return nil
}

// answered settles the request that a response answers.
func (s *session) answered(h header, id string) *closure {
	if !s.settle(h, id) {
		s.owner.metrics.unmatched.Inc()
		return nil
	}
	if h.status == StatusInvBindState && s.owner.sends == cmdSubmitSM { // a customer's program only refuses a receipt so
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
	if s.owner.serves() {
		s.useless.Add(-1)
	}

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

// result is the outcome in a response to a submit.
func (s *session) result(h header, id string, written time.Time) Result {
	latency := max(s.heard.get().Sub(written), 0)
	if h.status != StatusOK || h.command == cmdGenericNack { // a generic_nack need not say why
		return Result{Outcome: Rejected, Status: cmp.Or(h.status, StatusUnknown), Latency: latency,
			Err: &StatusError{Command: s.owner.sends.String(), Status: h.status}}
	}
	return Result{Outcome: Accepted, MessageID: id, Latency: latency}
}

// take reserves room for a request of the peer, or returns the status of a refusal.
func (s *session) take(length int) (cost int64, refusal Status) {
	if s.refusing.Load() {
		return 0, StatusMsgQueueFull
	}
	cost, refusal = s.owner.allowance.owe(length)
	if refusal == StatusOK {
		s.owed.Add(1)
	}
	return cost, refusal
}

// respond sends the response to a request that take let in. It returns the place of the response in the stream of
// control PDUs; 0 if the session has ended.
func (s *session) respond(h header, status Status, cost int64, body ...byte) (place uint64) {
	s.owner.allowance.settled(cost)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendLocked(header{h.command | responseBit, status, h.sequence}, body...)
	if s.closing == nil {
		place = s.controlQueued
	}
	s.owed.Add(-1) // after the response is queued, so that no unbind overtakes it
	if s.draining {
		s.changed.Broadcast()
	}
	return place
}

// open is a request of the peer until it is answered.
type open struct {
	session  *session
	header   header
	cost     int64 // session.take
	answered atomic.Bool
	place    atomic.Uint64 // of the response (session.respond)
}

// answer responds, unless the request was answered before.
func (o *open) answer(status Status, body ...byte) (first bool) {
	if o.session == nil || o.answered.Swap(true) {
		return false
	}
	o.place.Store(o.session.respond(o.header, status, o.cost, body...))
	return true
}
