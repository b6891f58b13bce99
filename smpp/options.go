package smpp

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
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
	// Transmitter: a bind_transmitter session alone. Receipts come on another bind, or never.
	Transmitter
	// Receiver: a bind_receiver session alone. Submit always fails with ErrNotBound.
	Receiver
)

// modes are the modes in the words of the configuration, with the roles of their sessions.
var modes = map[BindMode]struct {
	word  string
	roles []role
}{
	Transceiver:         {"transceiver", []role{asTransceiver}},
	TransmitterReceiver: {"transmitter_receiver", []role{asTransmitter, asReceiver}},
	Transmitter:         {"transmitter", []role{asTransmitter}},
	Receiver:            {"receiver", []role{asReceiver}},
}

// String returns the mode as the configuration spells it.
func (m BindMode) String() string { return modes[m].word }

// Submits reports whether a bind of this mode can submit.
func (m BindMode) Submits() bool { return m.has(role.submits) }

// Receives reports whether a bind of this mode gets receipts and MOs.
func (m BindMode) Receives() bool { return m.has(func(r role) bool { return r != asTransmitter }) }

func (m BindMode) has(ability func(role) bool) bool {
	return slices.ContainsFunc(modes[m].roles, ability)
}

// Versions of the protocol: interface_version of the bind (SMPP 3.4, 5.2.4).
const (
	Version33 uint8 = 0x33 // without optional parameters
	Version34 uint8 = 0x34
	Version50 uint8 = 0x50
)

// Account is where a session binds, and as whom.
type Account struct {
	// Addresses are host:port. The next is tried when one does not connect or does not bind.
	Addresses []string
	SystemID  string // at most maxCredential bytes; SMPP 3.4 has 15
	Password  string // at most maxCredential bytes; SMPP 3.4 has 8, but carriers give out longer ones
}

// maxCredential bounds system_id, password and system_type. The fields are terminated by a NUL, so longer values than
// those of SMPP 3.4 (4.1.1) can be read; SMSCs take them.
const maxCredential = 255

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

// Options configures a Bind. Addresses, SystemID and Deliver are required; a zero
// duration or Window means its default.
type Options struct {
	Carrier string // metric and log label
	Name    string // the label link of metrics and of the log
	Account
	// Receiver is where the receiver of a TransmitterReceiver binds, if elsewhere. Empty fields are those of Account.
	Receiver Account
	// LocalAddress is the source IP address of our connections; empty: the system chooses.
	LocalAddress string
	// TLS turns TLS on. ServerName defaults to the host of the address,
	// MinVersion to TLS 1.2.
	TLS  *tls.Config
	Mode BindMode

	// Version is the interface_version of the bind; 0: Version34. With Version33 no
	// optional parameters are sent.
	Version      uint8
	SystemType   string // at most maxCredential bytes; SMPP 3.4 has 12
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

	// Reading returns how the carrier's deliveries are read; nil: as in SMPP 3.4.
	Reading func() Reading

	// Deliver receives every deliver_sm and data_sm, one at a time per session. The
	// session's reader calls it; it must not block. When the unanswered ones take 1 MiB,
	// the carrier is refused with Busy and delivers again later.
	Deliver func(*Delivery)
	// Busy returns the status of such a refusal; nil, or 0: ESME_RMSGQFUL.
	Busy func() Status

	// OnLate is called with a late submit_sm_resp: the response to a submit_sm (by its
	// Key) that already ended as NoAnswer, in the same session. The session's reader
	// calls it; it must not block.
	OnLate func(key uint64, r Result)

	// Class returns the class of a status for this carrier; nil: Status.Class.
	Class func(Status) Class

	Log     *slog.Logger // nil discards
	Metrics *Metrics     // shared by all binds; nil: not registered
}

// account returns where a session of this role binds.
func (o *Options) account(r role) Account {
	a := o.Account
	if r != asReceiver {
		return a
	}
	if len(o.Receiver.Addresses) > 0 {
		a.Addresses = o.Receiver.Addresses
	}
	a.SystemID, a.Password = cmp.Or(o.Receiver.SystemID, a.SystemID), cmp.Or(o.Receiver.Password, a.Password)
	return a
}

// check fills in the defaults and returns an error for invalid options.
func (o *Options) check() error {
	var errs []error
	refuse := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if len(o.Addresses) == 0 {
		refuse("no address")
	}
	for _, address := range slices.Concat(o.Addresses, o.Receiver.Addresses) {
		if _, _, err := net.SplitHostPort(address); err != nil {
			refuse("address: %w", err)
		}
	}
	if _, err := netip.ParseAddr(o.LocalAddress); err != nil && o.LocalAddress != "" {
		refuse("local address: %w", err)
	}
	if o.Deliver == nil {
		refuse("no Deliver: receipts would have nowhere to go")
	}
	if o.Mode > Receiver {
		refuse("bind mode %d does not exist", o.Mode)
	}
	if o.SystemID == "" {
		refuse("system_id is empty")
	}
	for _, f := range []struct {
		name, value string
		max         int
	}{
		{"system_id", o.SystemID, maxCredential},
		{"system_id of the receiver", o.Receiver.SystemID, maxCredential},
		{"password", o.Password, maxCredential},
		{"password of the receiver", o.Receiver.Password, maxCredential},
		{"system_type", o.SystemType, maxCredential},
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
	o.Version = cmp.Or(o.Version, Version34)
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
