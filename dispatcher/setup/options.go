package setup

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/messages"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// Refund selects the failed messages that are refunded (rule choices 4.6).
type Refund uint8

const (
	RefundUnsubmitted Refund = iota // expired here, or its handset opted out; no carrier ever accepted a segment
	RefundFailed                    // every failed message
	RefundNever
)

// Options configures a Dispatcher.
type Options struct {
	Carriers         []Carrier
	Validity         time.Duration // of a message; default 24 h
	Refund           Refund
	SweepInterval    time.Duration // between searches for messages missing from the queue; default 1 s
	ReceiptRetention time.Duration // of receipts that match no segment; default 7 days
	InboundRetention time.Duration // of MOs; default 30 days
	MessageRetention time.Duration // of final messages; 0: no limit
	BodyRetention    time.Duration // of their texts; 0: as long as the messages
	NumberRetention  time.Duration // of their phone numbers; 0: as long as the messages
	StrandedAfter    time.Duration // a carrier without links for so long is gone; default 10 min
	Heartbeat        time.Duration // between reports of the links; leases are renewed twice as often; default 1 s
	DeadAfter        time.Duration // a dispatcher that has not renewed for so long is dead; default 4 s
	// a link whose carrier is unreachable for so long goes to another willing dispatcher; default 10 s
	GiveUpAfter  time.Duration
	GiveUpFor    time.Duration // this process then leaves it to the others for so long; default 1 min
	BreakerPause time.Duration // before the first probe of a link whose carrier refuses everything; default 15 s
	BreakerAfter time.Duration // without an acceptance, after which it counts as refusing everything; default 1 min
	OTPKey       []byte        // of the one-time codes in texts
	Log          *slog.Logger
	Metrics      prometheus.Registerer

	// QuietHours applies to companies without their own. QuietCompanies returns the
	// companies with their own; nil: none.
	QuietHours     sms.QuietHours
	QuietCompanies func(context.Context) (map[int64]sms.QuietHours, error)

	// Route returns the current carrier of a number. Messages of a removed carrier
	// go there. nil: they wait until they expire.
	Route func(sms.Number) (carrier string, ok bool)
	// Inbound is called after MOs were stored. It must not block. It may be nil.
	Inbound func()
}

// The defaults of BreakerPause and BreakerAfter.
const (
	BreakerPause = 15 * time.Second
	BreakerAfter = time.Minute
)

// DeadAfter gives a process 2.5 s to renew before it stops submitting, 3 s before it unbinds,
// and 1 s to unbind.
const DeadAfter = 4 * time.Second

// Defaults sets what is not configured.
func (o *Options) Defaults() {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&o.Validity, 24 * time.Hour}, {&o.SweepInterval, time.Second},
		{&o.ReceiptRetention, 7 * 24 * time.Hour}, {&o.InboundRetention, 30 * 24 * time.Hour},
		{&o.StrandedAfter, 10 * time.Minute}, {&o.Heartbeat, time.Second}, {&o.DeadAfter, DeadAfter},
		{&o.GiveUpAfter, 10 * time.Second}, {&o.GiveUpFor, time.Minute}, {&o.BreakerPause, BreakerPause},
		{&o.BreakerAfter, BreakerAfter},
	} {
		*d.value = cmp.Or(*d.value, d.def)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Pays reports whether a failed live message is refunded.
func (r Refund) Pays(m messages.Settled) bool {
	if m.Reason == submission.ReasonClosed && m.Unsubmitted {
		return true // no carrier could have taken it
	}
	switch r {
	case RefundFailed:
		return true
	case RefundUnsubmitted:
		return m.Unsubmitted && (m.Reason == submission.ReasonExpired || m.Reason == submission.ReasonOptedOut)
	}
	return false
}
