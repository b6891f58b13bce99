package smpp

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"time"
)

// Login is the bind request of a customer's program.
type Login struct {
	SystemID     string // at most 255 bytes, as are Password and SystemType
	Password     string
	SystemType   string
	Mode         BindMode // Transceiver, Transmitter or Receiver
	Version      uint8    // interface_version as sent; below Version34 the session has no optional parameters
	AddressTON   uint8
	AddressNPI   uint8
	AddressRange string
	Remote       net.Addr
}

// Admission is what a login gets when it is let in. Its functions are called by the goroutines of the session: they
// must not block. Request is required if the login's mode submits.
type Admission struct {
	// Window is how many requests of the peer may be unanswered; 0: DefaultServedWindow, at most MaxServedWindow. Up to
	// twice as many are passed to Request, because clients count differently; the excess gets ESME_RTHROTTLED. Requests
	// whose bodies take more than 1 MiB together get ESME_RMSGQFUL.
	Window int
	// Bound, if set, is called once, behind the answer to the bind and before the first Request: from now on Peer.Deliver
	// works.
	Bound func()
	// Request gets the requests of the peer, one at a time, in their order. Each must be answered once, from any goroutine
	// (Request.Accept and the others).
	Request func(*Request)
	// OnLate, if set, is called with a late deliver_sm_resp: the response to a deliver_sm (by its Key) that already ended
	// as NoAnswer, in the same session.
	OnLate func(key uint64, r Result)
}

// Defaults of Serving and Admission.
const (
	DefaultServedWindow   = 10
	MaxServedWindow       = 100
	DefaultDeliverWindow  = 100
	DefaultServedBind     = 30 * time.Second
	DefaultServedResponse = 60 * time.Second
	DefaultInactivity     = 300 * time.Second
	maxBindPDU            = 1024 // bytes of the longest PDU before the bind
	maxUnbound            = 10   // PDUs before the bind after which the connection ends
	servedExcess          = 2    // requests that are taken, as a multiple of the window
	maxStatusText         = 255  // bytes of additional_status_info_text (SMPP 3.4, 5.3.2.11), without its NUL
)

// Serving are the options of served connections; one value serves them all. Login and SystemID are required; a zero
// duration or Window means its default.
type Serving struct {
	// SystemID is ours, in the bind response: at most 15 bytes.
	SystemID string
	// Login decides about a bind. It may block, within BindTimeout. StatusOK lets the login in; any other status refuses
	// it, and the connection ends.
	Login func(ctx context.Context, p *Peer, l Login) (Admission, Status)

	Window         int           // deliver_sm that may be unanswered in one session: DefaultDeliverWindow
	BindTimeout    time.Duration // from the connection to the answered bind, TLS handshake included: DefaultServedBind
	EnquireLink    time.Duration // silence of the peer after which an enquire_link goes out: DefaultEnquireLink
	EnquireTimeout time.Duration // further silence that ends the session: DefaultEnquireTimeout
	// without a request of the peer, or a deliver_sm_resp, and with nothing unanswered, we unbind: DefaultInactivity
	Inactivity      time.Duration
	ResponseTimeout time.Duration // an unanswered deliver_sm ends as NoAnswer: DefaultServedResponse
	WriteTimeout    time.Duration // a peer that stops reading ends the session after it: DefaultWriteTimeout
	DrainTimeout    time.Duration // how long Run waits for responses, both ways, when ctx ends: DefaultDrainTimeout
	UnbindTimeout   time.Duration // how long Run then waits for unbind_resp: DefaultUnbindTimeout

	Log     *slog.Logger   // nil discards
	Metrics *ServerMetrics // shared by all peers; nil: not registered
}

// complete fills in the defaults.
func (o *Serving) complete() {
	o.Window = cmp.Or(o.Window, DefaultDeliverWindow)
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&o.BindTimeout, DefaultServedBind},
		{&o.EnquireLink, DefaultEnquireLink},
		{&o.EnquireTimeout, DefaultEnquireTimeout},
		{&o.Inactivity, DefaultInactivity},
		{&o.ResponseTimeout, DefaultServedResponse},
		{&o.WriteTimeout, DefaultWriteTimeout},
		{&o.DrainTimeout, DefaultDrainTimeout},
		{&o.UnbindTimeout, DefaultUnbindTimeout},
	} {
		*d.value = cmp.Or(*d.value, d.def)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewServerMetrics(nil)
	}
}
