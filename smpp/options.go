package smpp

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"time"
)

// BindMode is the way in which a Bind binds.
type BindMode uint8

const (
	// Transceiver: one session for both directions (bind_transceiver).
	Transceiver BindMode = iota
	// TransmitterReceiver: a bind_transmitter and a bind_receiver session that
	// are bound and closed together.
	TransmitterReceiver
)

// String returns the mode as the configuration spells it.
func (m BindMode) String() string {
	if m == TransmitterReceiver {
		return "transmitter_receiver"
	}
	return "transceiver"
}

// Defaults of Options.
const (
	DefaultWindow          = 10
	DefaultEnquireLink     = 30 * time.Second
	DefaultEnquireTimeout  = 10 * time.Second
	DefaultResponseTimeout = 10 * time.Second
	DefaultDialTimeout     = 10 * time.Second
	DefaultBindTimeout     = 10 * time.Second
	DefaultUnknownHold     = 5 * time.Minute
	DefaultWriteTimeout    = 10 * time.Second
	DefaultDrainTimeout    = 5 * time.Second
	DefaultUnbindTimeout   = 2 * time.Second
)

// Options configures a Bind. Address, SystemID and Deliver are required; a zero
// duration or Window means its default.
type Options struct {
	Carrier string // metric and log label
	Name    string // the label link of metrics and of the log
	Address string // host:port
	// TLS turns TLS on. ServerName defaults to the host of Address,
	// MinVersion to TLS 1.2.
	TLS  *tls.Config
	Mode BindMode

	SystemID     string // at most 15 bytes
	Password     string // at most 8 bytes
	SystemType   string // at most 12 bytes
	AddressTON   uint8
	AddressNPI   uint8
	AddressRange string // at most 40 bytes

	// Window is how many submit_sm may be unanswered at once.
	Window int
	// TPS is the most submit_sm in any one second, evenly spread; 0 is unpaced.
	TPS float64

	EnquireLink     time.Duration // silence of the peer after which an enquire_link goes out
	EnquireTimeout  time.Duration // further silence that ends the session
	ResponseTimeout time.Duration // an unanswered submit_sm is overdue after it; it keeps its slot
	DialTimeout     time.Duration // TCP and TLS handshake
	BindTimeout     time.Duration // from the bind to its response
	UnknownHold     time.Duration // an unanswered submit_sm ends as NoAnswer, once bytes came from the peer after it
	WriteTimeout    time.Duration // a peer that stops reading ends the session after it
	DrainTimeout    time.Duration // how long Run waits for responses at shutdown
	UnbindTimeout   time.Duration // how long Run then waits for unbind_resp

	// Deliver receives every deliver_sm and data_sm, one at a time per session. The
	// session's reader calls it; it must not block. When the unanswered ones take 1 MiB,
	// the carrier is answered ESME_RMSGQFUL and delivers again later.
	Deliver func(*Delivery)

	// OnLate is called with a late submit_sm_resp: the response to a submit_sm (by its
	// Key) that already ended as NoAnswer, in the same session. The session's reader
	// calls it; it must not block.
	OnLate func(key uint64, r Result)

	// Class returns the class of a status for this carrier; nil: Status.Class.
	Class func(Status) Class

	Log     *slog.Logger // nil discards
	Metrics *Metrics     // shared by all binds; nil: not registered
}

// check fills in the defaults and returns an error for invalid options.
func (o *Options) check() error {
	var errs []error
	refuse := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		refuse("address: %w", err)
	}
	if o.Deliver == nil {
		refuse("no Deliver: receipts would have nowhere to go")
	}
	if o.Mode > TransmitterReceiver {
		refuse("bind mode %d does not exist", o.Mode)
	}
	if o.SystemID == "" {
		refuse("system_id is empty")
	}
	for _, f := range []struct {
		name, value string
		max         int
	}{
		{"system_id", o.SystemID, 15},
		{"password", o.Password, 8},
		{"system_type", o.SystemType, 12},
		{"address_range", o.AddressRange, 40},
	} {
		if err := checkCString(f.name, f.value, f.max); err != nil {
			errs = append(errs, err)
		}
	}
	if o.TPS < 0 || math.IsNaN(o.TPS) || math.IsInf(o.TPS, 0) {
		refuse("tps %v is not a rate", o.TPS)
	}
	if o.Window < 0 {
		refuse("window must not be negative")
	}
	o.Window = cmp.Or(o.Window, DefaultWindow)
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"enquire_link", &o.EnquireLink, DefaultEnquireLink},
		{"enquire timeout", &o.EnquireTimeout, DefaultEnquireTimeout},
		{"response timeout", &o.ResponseTimeout, DefaultResponseTimeout},
		{"dial timeout", &o.DialTimeout, DefaultDialTimeout},
		{"bind timeout", &o.BindTimeout, DefaultBindTimeout},
		{"unknown hold", &o.UnknownHold, DefaultUnknownHold},
		{"write timeout", &o.WriteTimeout, DefaultWriteTimeout},
		{"drain timeout", &o.DrainTimeout, DefaultDrainTimeout},
		{"unbind timeout", &o.UnbindTimeout, DefaultUnbindTimeout},
	} {
		if *d.value < 0 {
			refuse("%s must not be negative", d.name)
		}
		*d.value = cmp.Or(*d.value, d.def)
	}
	o.UnknownHold = max(o.UnknownHold, o.ResponseTimeout)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if len(errs) > 0 {
		return fmt.Errorf("smpp link %q: %w", o.Name, errors.Join(errs...))
	}
	return nil
}
