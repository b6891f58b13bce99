// Package setup has what a dispatcher and its carriers are configured with, and what a carrier's answers mean by it.
package setup

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"intumwa/dispatcher/profile"
	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/messages/submission"
	"intumwa/smpp"
	"intumwa/sms"
)

// Confirm is the event that makes a message sent (rule choices 5.2).
type Confirm uint8

const (
	ConfirmByReceipt Confirm = iota // the delivery receipt
	ConfirmBySubmit                 // the submit_sm_resp, for carriers without receipts
)

// Ambiguous is the policy for a segment whose link died before it was answered.
type Ambiguous = submission.Policy

const (
	AmbiguousResend       = submission.Resend       // send again; it may arrive twice
	AmbiguousAwaitReceipt = submission.AwaitReceipt // wait for a receipt until the message's deadline
	AmbiguousFail         = submission.Fail         // fail the message
)

// Carrier is the dispatcher's configuration of one mobile operator: how it wants its SMPP, and what we do when it does
// not deliver.
type Carrier struct {
	Name             string
	Confirm          Confirm
	OnReceiptTimeout sms.Status    // Failed or Sent
	ReceiptTimeout   time.Duration // past the validity; default 1 h
	profile.Profile
	OnAmbiguous   Ambiguous
	RetryMin      time.Duration // default 1 s
	RetryMax      time.Duration // default 60 s
	Failover      []string
	FailoverAfter time.Duration // default 10 s
	SecondCarrier string        // tried once for a message that this one fails; "": none
	SecondWithin  time.Duration // of acceptance, after a receipt with UNDELIV; 0: after refusals only
	Registration  bool          // a sender works there only once it is registered
	MaxUnmatched  int           // unmatched receipts kept per hour; default 50,000
	MaxInbound    int           // MOs kept per hour; default 20,000
	Links         []Link
}

// Link is one configured connection to a carrier. The dispatcher sets the
// functions, Carrier, Log and Metrics of its options.
type Link struct {
	smpp.Options
}

// Defaults sets what is not configured, and refuses what cannot work.
func (c *Carrier) Defaults() error {
	if c.Name == "" {
		return fmt.Errorf("a carrier without a name")
	}
	if c.OnReceiptTimeout == sms.Pending {
		c.OnReceiptTimeout = sms.Failed
	}
	if c.ReceiptTimeout == 0 {
		c.ReceiptTimeout = time.Hour
	}
	if c.RetryMin == 0 {
		c.RetryMin = time.Second
	}
	if c.RetryMax == 0 {
		c.RetryMax = time.Minute
	}
	if c.FailoverAfter == 0 {
		c.FailoverAfter = 10 * time.Second
	}
	if c.MaxUnmatched == 0 {
		c.MaxUnmatched = 50_000
	}
	if c.MaxInbound == 0 {
		c.MaxInbound = 20_000
	}
	for _, l := range c.Links {
		hold := cmp.Or(l.UnknownHold, smpp.DefaultUnknownHold)
		dead := cmp.Or(l.EnquireLink, smpp.DefaultEnquireLink) + cmp.Or(l.EnquireTimeout, smpp.DefaultEnquireTimeout)
		if hold <= dead {
			return fmt.Errorf("carrier %s: unknown_hold (%s) must be longer than enquire_link and enquire_timeout of link %s "+
				"together (%s): "+
				"until then nobody knows whether the session is alive", c.Name, hold, l.Name, dead)
		}
	}
	if err := c.Check(); err != nil {
		return fmt.Errorf("carrier %s: %w", c.Name, err)
	}
	c.Links = slices.Clone(c.Links)
	for i := range c.Links {
		if c.Links[i].Window == 0 {
			c.Links[i].Window = smpp.DefaultWindow
		}
	}
	return nil
}

// retryDelay is the delay after the nth attempt: RetryMin doubling to RetryMax,
// with a jitter of ±25 %, never under RetryMin.
func (c *Carrier) retryDelay(attempt int, random float64) time.Duration {
	delay := c.RetryMax
	if attempt < 20 {
		delay = min(c.RetryMin<<max(attempt-1, 0), c.RetryMax)
	}
	delay = time.Duration(float64(delay) * (0.75 + random/2))
	return min(max(delay, c.RetryMin), c.RetryMax)
}

// Equal reports whether two configurations describe the same link.
func (l *Link) Equal(other *Link) bool {
	a, b := *l, *other
	// Set by the dispatcher, or compared below.
	a.Deliver, b.Deliver, a.Log, b.Log, a.Metrics, b.Metrics = nil, nil, nil, nil, nil, nil
	a.OnLate, b.OnLate, a.Class, b.Class, a.Busy, b.Busy, a.Reading, b.Reading = nil, nil, nil, nil, nil, nil, nil, nil
	if (a.TLS == nil) != (b.TLS == nil) {
		return false
	}
	if a.TLS != nil {
		if a.TLS.ServerName != b.TLS.ServerName || !reflect.DeepEqual(a.TLS.Certificates, b.TLS.Certificates) ||
			!a.TLS.RootCAs.Equal(b.TLS.RootCAs) {
			return false
		}
		a.TLS, b.TLS = nil, nil
	}
	return reflect.DeepEqual(a, b) //nolint:govet // what may hold an error (the log, the TLS files) is out of it by now
}

// AmbiguousDelay is the wait before a segment with a lost answer is sent again.
// Its receipt may settle it first.
const AmbiguousDelay = 5 * time.Second

// Event converts a segment's outcome to an event of its submission. attempt is the
// number of its message's attempt.
func (c *Carrier) Event(r smpp.Result, attempt int) submission.Event {
	switch r.Outcome {
	case smpp.Accepted:
		return submission.Answered{Confirms: c.Confirm == ConfirmBySubmit}
	case smpp.Rejected:
		class := c.ClassOf(r.Status)
		if class != smpp.ClassPermanent && class != smpp.ClassUnroutable {
			return c.RefusedForNow(r.Status, attempt)
		}
		return submission.Rejected{Permanent: true, Unroutable: class == smpp.ClassUnroutable && c.SecondCarrier != "",
			Reason: r.Status.String()}
	case smpp.NoAnswer:
		return submission.NoAnswer{Delay: AmbiguousDelay}
	}
	if field, bad := errors.AsType[*smpp.FieldError](r.Err); bad {
		return submission.Unsendable{Reason: field.Error()}
	}
	return submission.NotWritten{}
}

// RefusedForNow is the event of a refusal after which the message waits, whatever the class of
// the status.
func (c *Carrier) RefusedForNow(s smpp.Status, attempt int) submission.Event {
	return submission.Rejected{Reason: s.Explained(), Delay: c.retryDelay(attempt, rand.Float64())}
}

// Segments builds the submit_sm of a message, cut as its submit records were (profile.Profile.SegmentsAs). key reveals
// its one-time code.
func (c *Carrier) Segments(m *outbox.Claimed, key []byte, now time.Time) ([]smpp.Submit, error) {
	return c.SegmentsAs(&profile.Message{ID: m.ID, Sender: m.Sender, Number: m.Number, Body: m.Secret.Reveal(key, m.Body),
		ConcatRef: m.ConcatRef,
		ExpiresAt: m.ExpiresAt, Single: m.Lane == messages.LaneSingle, Class: m.Class, Part: m.Part}, now,
		submission.TotalOf(m.Records))
}

// Marks reports whether a claim is marked as begun before its first segment is submitted.
// It is if ambiguous segments are not sent again (on_ambiguous), or if the carrier has a
// second carrier.
func (c *Carrier) Marks() bool { return c.OnAmbiguous.Marks(c.SecondCarrier != "") }
