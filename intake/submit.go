package intake

import (
	"context"
	"strconv"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// Submit is a valid message, or one part of a long message, that a customer's program submitted over SMPP.
type Submit struct {
	Number  sms.Number
	Sender  string
	Message string // not empty
	Origin  messages.Origin

	Schedule Schedule
}

// Submit accepts a message under the rules of a batch: the company must be
// approved and verified, the sender approved. It is charged in the transaction that records it. A part is one segment;
// the text must fit one. From the test sender to a sandbox number it is free and needs only a company. It returns the
// message's ULID, also with ErrOutcomeUnknown, for [messages.Store.Known]; other errors are sms.Refusal, ErrUnavailable
// and faults.
func (in *Intake) Submit(ctx context.Context, p *accounts.Principal, s Submit) (ulid.ULID, error) {
	batch := &Batch{Sender: s.Sender, Recipients: []Recipient{{Number: s.Number}}}
	kind, check := kindSMPP, func(p *accounts.Principal) error { return in.maySendBatch(p, batch) }
	if _, fixed := sms.SandboxFateOf(s.Number); fixed && in.IsTestSender(s.Sender) {
		kind, check = kindSandbox, func(*accounts.Principal) error { return nil }
	}
	var made *messages.Message
	_, err := in.accept(ctx, p, nil, check, func(p *accounts.Principal) (r *request, err error) {
		r, made, err = in.submission(p, s, kind)
		return r, err
	})
	if made == nil {
		return ulid.ULID{}, err
	}
	return made.ULID, err
}

func (in *Intake) submission(p *accounts.Principal, s Submit, kind kind) (*request, *messages.Message, error) {
	carrier, ok := sms.SandboxCarrier, true
	if kind != kindSandbox {
		carrier, ok = in.Route(s.Number)
	}
	switch {
	case !ok:
		return nil, nil, RefuseNoCarrier
	case kind != kindSandbox && !in.WorksAt(p.Company, s.Sender, carrier):
		return nil, nil, RefuseUnregistered
	}
	m := &messages.Message{
		ULID: in.ulids.next(), CompanyID: p.Company.ID, UserID: p.UserID, Number: s.Number, Sender: s.Sender,
		Carrier: carrier,
		Test:    kind == kindSandbox, Validity: in.opts.Validity, Origin: &s.Origin, Channel: messages.SMPP,
	}
	if s.Origin.Part == nil {
		m.Body, m.Encoding, m.Segments = size(p.Company.SmartEncoding, s.Message)
	} else {
		coding := s.Origin.Part.Coding
		m.Body, m.Encoding, m.Segments = s.Message, coding.Encoding(), 1
		if len(coding.Octets(s.Message)) > coding.Most(false) {
			return nil, nil, RefuseTooLong
		}
	}
	if m.Segments > in.opts.MaxSegments {
		return nil, nil, RefuseTooLong
	}
	s.Schedule.of(m, postgres.Now())
	r := &request{
		user: p.UserID, company: p.Company.ID, ref: m.ULID, kind: kind, segments: m.Segments,
		messages: []*messages.Message{m},
		refusal:  RefuseCredits("message", strconv.Itoa(m.Segments)), optOuts: p.Company.OptOuts,
		response: func(int64) any { return struct{}{} },
	}
	if kind == kindSandbox {
		r.refusal, r.optOuts = RefuseSandboxQuota, false
	}
	return r, m, nil
}
