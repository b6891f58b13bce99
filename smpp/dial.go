package smpp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// bindFirst is the sequence_number of the bind.
const bindFirst = 1

// The results of bind attempts, as label values of metrics.
const (
	bindOK         = "ok"
	bindDialFailed = "dial_failed"
	bindRejected   = "rejected"
	bindTimeout    = "timeout"
	bindBroken     = "broken" // closed or not SMPP
)

// dialCarrier connects: TCP, then TLS when configured, in DialTimeout.
func (b *Bind) dialCarrier(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, b.opts.DialTimeout)
	defer cancel()
	dialer := new(net.Dialer)
	if local := net.ParseIP(b.opts.LocalAddress); local != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: local}
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil || b.opts.TLS == nil {
		return conn, err
	}
	secure := tls.Client(conn, b.tlsConfig(address))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return secure, nil
}

func (b *Bind) tlsConfig(address string) *tls.Config {
	c := b.opts.TLS.Clone()
	if c.ServerName == "" {
		c.ServerName, _, _ = net.SplitHostPort(address) // New has checked it
	}
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS12
	}
	return c
}

// bindSession dials and binds one session at an address. It does not start it.
func (b *Bind) bindSession(ctx context.Context, r role, address string, lost chan<- *session) (*session, error) {
	conn, err := b.dial(ctx, address)
	if err != nil {
		if ctx.Err() == nil {
			b.metrics.bindAttempt(bindDialFailed, StatusOK)
		}
		return nil, fmt.Errorf("dialling: %w", err)
	}
	s := newSession(&b.endpoint, r, conn, lost)
	if secure, ok := conn.(*tls.Conn); ok {
		if certs := secure.ConnectionState().PeerCertificates; len(certs) > 0 {
			s.cert = certs[0].NotAfter
		}
	}
	err = b.bindAs(ctx, s)
	if ctx.Err() == nil {
		b.metrics.bindAttempt(bindResult(err), bindStatus(err))
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

func bindResult(err error) string {
	switch {
	case err == nil:
		return bindOK
	case refusal(err) != nil:
		return bindRejected
	case errors.Is(err, os.ErrDeadlineExceeded):
		return bindTimeout
	}
	return bindBroken
}

// bindAs sends the bind request of a session and waits for its response, at most BindTimeout. Meanwhile
// it responds to the requests that a peer may send before the session is bound.
func (b *Bind) bindAs(ctx context.Context, s *session) error {
	o := &b.opts
	cmd := s.role.command()
	s.sequence = bindFirst
	pdu, err := encodeBind(o, s.role, bindFirst)
	if err != nil {
		return err
	}
	// The reader sets read deadlines of its own, so time and ctx end the wait
	// by closing the connection.
	limited, cancel := context.WithTimeout(ctx, o.BindTimeout)
	defer cancel()
	stop := context.AfterFunc(limited, func() { _ = s.conn.Close() })
	var unfit header
	err = b.awaitBind(s, cmd, pdu, &unfit)
	if stop() {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	came := ""
	if unfit.command != 0 {
		came = fmt.Sprintf(" (a %s with sequence_number %d came, which does not answer it)", unfit.command, unfit.sequence)
	}
	return fmt.Errorf("no answer to %s for %s%s: %w", cmd, o.BindTimeout, came, os.ErrDeadlineExceeded)
}

// awaitBind sends the bind and reads until it is answered. unfit is the last response that did
// not answer it.
func (b *Bind) awaitBind(s *session, cmd command, pdu []byte, unfit *header) error {
	b.metrics.sent(cmd, StatusOK)
	if err := s.writeNow(pdu); err != nil {
		return err
	}
	for {
		h, body, err := s.frames.next()
		if err != nil {
			return err
		}
		b.tracers.read(h, body)
		b.metrics.received(h.command, h.status)
		b.lastPDU.Store(s.heard.get().UnixNano())
		switch {
		case h.command.response():
			answers, refused := bindAnswer(cmd, h)
			if answers && refused == nil {
				b.peer.Store(uint32(peerVersion(body)))
			}
			if answers {
				return refused
			}
			b.metrics.unmatched.Inc()
			*unfit = h
		case h.command == cmdEnquireLink:
			err = s.answerNow(header{cmdEnquireLinkResp, StatusOK, h.sequence})
		case h.command == cmdUnbind:
			_ = s.answerNow(header{cmdUnbindResp, StatusOK, h.sequence})
			return errPeerUnbind
		case h.command == cmdDeliverSM, h.command == cmdDataSM:
			err = s.answerNow(header{h.command | responseBit, StatusInvBindState, h.sequence}, 0)
		case h.command == cmdOutbind, h.command == cmdAlertNotification:
			b.metrics.unmatched.Inc()
		default:
			err = s.answerNow(header{cmdGenericNack, StatusInvCmdID, h.sequence})
		}
		if err != nil {
			return err
		}
	}
}

// bindAnswer returns whether a response answers the bind with cmd, and with which error.
//
// The bind is the only open request, so any refusal answers it, whatever its sequence_number and
// command: an SMSC that cannot or will not read the bind often answers with sequence_number 0,
// with generic_nack or with another bind's response. An acceptance must fit. One with another
// sequence_number is of no use, because the answers to our submit_sm would not fit either.
func bindAnswer(cmd command, h header) (answers bool, err error) {
	switch {
	case h.command == cmdGenericNack || h.status != StatusOK:
		return true, &StatusError{Command: cmd.String(), Status: h.status}
	case h.command == cmd|responseBit && h.sequence == bindFirst:
		return true, nil
	}
	return false, nil
}

// peerVersion reads sc_interface_version, the only optional parameter of a bind response (SMPP 3.4, 4.1.2); 0 if there
// is none.
func peerVersion(body []byte) uint8 {
	_, rest, _ := bytes.Cut(body, []byte{0}) // system_id
	var d Delivery
	_ = d.takeTLVs(rest) // what is damaged does not count
	if v, ok := d.TLV(TagSCInterfaceVersion); ok && len(v) == 1 {
		return v[0]
	}
	return 0
}

// answerNow responds to a PDU before the writer runs.
func (s *session) answerNow(h header, body ...byte) error {
	s.owner.metrics.sent(h.command, h.status)
	return s.writeNow(appendPDU(nil, h, body...))
}

func (s *session) writeNow(pdu []byte) error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(s.owner.writeTimeout)); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if _, err := s.conn.Write(pdu); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	s.owner.tracers.wrote(pdu)
	return nil
}
