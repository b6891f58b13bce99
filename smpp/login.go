package smpp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

var errNoBind = errors.New("no bind came")

// admit reads until a bind is let in, and queues its response. It is the only goroutine of the session.
func (p *Peer) admit(ctx context.Context) error {
	s := p.session
	// The reader sets read deadlines of its own, so time and ctx end the wait by closing the connection.
	limited, cancel := context.WithTimeout(ctx, p.opts.BindTimeout)
	defer cancel()
	stop := context.AfterFunc(limited, func() { s.hangUp(false) })
	err := p.awaitBind(limited)
	stop()
	if limited.Err() != nil { // Login may see the end of its time before the function of stop has begun
		err = cmp.Or(ctx.Err(), fmt.Errorf("%w in %s: %w", errNoBind, p.opts.BindTimeout, os.ErrDeadlineExceeded))
	}
	if ctx.Err() == nil {
		p.metrics.bindAttempt(bindResult(err), bindStatus(err))
	}
	return err
}

// awaitBind answers what comes before the bind, which is little, and then the bind.
func (p *Peer) awaitBind(ctx context.Context) error {
	s := p.session
	for range maxUnbound {
		h, body, err := s.frames.next()
		if errors.Is(err, errLength) && s.answerNow(header{cmdGenericNack, StatusInvCmdLen, 0}) == nil {
			s.farewell()
		}
		if err != nil {
			return err
		}
		p.metrics.received(h.command, h.status)
		_, request := operation(h.command)
		_, binds := servedModes[h.command]
		switch {
		case binds:
			return p.decide(ctx, h, body)
		case h.command.response():
			p.metrics.unmatched.Inc()
		case h.command == cmdEnquireLink:
			err = s.answerNow(header{cmdEnquireLinkResp, StatusOK, h.sequence})
		case h.command == cmdUnbind:
			_ = s.answerNow(header{cmdUnbindResp, StatusOK, h.sequence})
			return errPeerUnbind
		case request:
			err = s.answerNow(header{h.command | responseBit, StatusInvBindState, h.sequence}, p.refusedBody(h.command, "")...)
		default:
			err = s.answerNow(header{cmdGenericNack, StatusInvCmdID, h.sequence})
		}
		if err != nil {
			return err
		}
	}
	return errNoBind
}

// decide lets a bind in or refuses it.
func (p *Peer) decide(ctx context.Context, h header, body []byte) error {
	s, served := p.session, servedModes[h.command]
	login, err := decodeLogin(served.mode, bytes.Clone(body))
	admission, status := Admission{}, StatusInvCmdLen
	if err == nil {
		login.Remote = s.conn.RemoteAddr()
		admission, status = p.opts.Login(ctx, p, login)
	} else if bad, ok := errors.AsType[*decodeError](err); ok {
		status = bad.status
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if status != StatusOK {
		if s.answerNow(header{h.command | responseBit, status, h.sequence}, p.refusedBody(h.command, "")...) == nil {
			s.farewell()
		}
		return &StatusError{Command: h.command.String(), Status: status}
	}
	admission.Window = min(cmp.Or(max(admission.Window, 0), DefaultServedWindow), MaxServedWindow)
	p.allowance.most = int64(servedExcess * admission.Window)
	p.onLate = admission.OnLate
	login.Password = ""
	p.mu.Lock()
	p.login, p.admission, p.boundAt = login, admission, time.Now()
	p.mu.Unlock()
	s.role, s.frames.longest, s.begun = served.role, maxPDU, time.Now()
	s.active.set(time.Now())
	answer := append([]byte(p.opts.SystemID), 0)
	if login.Version >= Version34 {
		answer = append(answer, byte(TagSCInterfaceVersion>>8), byte(TagSCInterfaceVersion&0xFF), 0, 1, Version34)
	}
	s.send(header{h.command | responseBit, StatusOK, h.sequence}, answer...)
	return nil
}

// served handles a request of the bound peer; false: it is no request of SMPP, or none that a server takes.
func (p *Peer) served(s *session, h header, body []byte) bool {
	op, known := operation(h.command)
	_, binds := servedModes[h.command]
	switch {
	case binds:
		p.refuse(h, StatusAlreadyBound, "")
	case !known:
		return false
	case !s.role.submits():
		p.refuse(h, StatusInvBindState, "The session is bound as receiver.")
	default:
		p.request(op, h, body)
	}
	return true
}

// request passes a request to Admission.Request, or refuses it.
func (p *Peer) request(op Operation, h header, body []byte) {
	s := p.session
	cost, refusal := s.take(len(body))
	if refusal != StatusOK {
		p.metrics.refused.Inc()
		text := "We take no more requests for now."
		if refusal == StatusThrottled {
			text = "More than twice the window is unanswered."
		}
		p.refuse(h, refusal, text)
		return
	}
	r, err := decodeRequest(op, bytes.Clone(body), s.heard.get())
	if err != nil {
		p.metrics.malformed.Inc()
		status := StatusSysErr
		if bad, ok := errors.AsType[*decodeError](err); ok {
			status = bad.status
		}
		p.count(status)
		s.respond(h, status, cost, p.refusedBody(h.command, err.Error())...)
		return
	}
	r.session, r.header, r.cost, r.peer = s, h, cost, p
	p.admission.Request(r)
}

// refuse answers a request that take did not let in.
func (p *Peer) refuse(h header, status Status, text string) {
	p.count(status)
	p.session.send(header{h.command | responseBit, status, h.sequence}, p.refusedBody(h.command, text)...)
}
