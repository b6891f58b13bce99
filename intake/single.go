package intake

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

const textQueued = "Message queued for delivery."

// Accepted is the response to a single send (rule api 2.1).
type Accepted struct {
	ID             ulid.ULID  `json:"id"`
	ItemCount      int        `json:"item_count"`
	RemainingItems int64      `json:"remaining_items"`
	Status         string     `json:"status"`
	To             sms.Number `json:"to"`
	Sender         string     `json:"sender"`
	Message        string     `json:"message"`
}

// Single is a valid single send (rule api 4.1).
type Single struct {
	Number  sms.Number
	Sender  string
	Message string
	Key     *Key

	Reference  string // the customer's own name; "": none
	CostCenter string // the customer's own label; "": none
	Schedule   Schedule

	// First is work of the transaction that accepts the message, whose id it gets; nil: none. Nothing remains of it unless
	// the message is accepted. It may be called again, after a rollback. verdict refuses the message.
	First func(ctx context.Context, tx pgx.Tx, id ulid.ULID) (verdict, err error)
}

// Send accepts a single message, live or, depending on its sender, in test mode. It returns sms.Refusal,
// ErrUnavailable, ErrKeyInUse, ErrKeyReused, or a fault.
func (in *Intake) Send(ctx context.Context, p *accounts.Principal, req Single) (Answer, error) {
	kind, check := in.maySend(req.Number, req.Sender)
	return in.accept(ctx, p, req.Key, check, func(p *accounts.Principal) (*request, error) {
		return in.single(ctx, p, req, kind)
	})
}

// maySend returns the kind of a single message, and the check of its caller.
func (in *Intake) maySend(number sms.Number, sender string) (kind, func(*accounts.Principal) error) {
	if !in.IsTestSender(sender) {
		return kindSingle, func(p *accounts.Principal) error {
			if !p.Company.Approved {
				return RefuseNotApproved
			}
			return maySendAs(p.Company, sender)
		}
	}
	if _, fixed := sms.SandboxFateOf(number); fixed {
		return kindSandbox, func(*accounts.Principal) error { return nil }
	}
	return kindTest, func(p *accounts.Principal) error { return maySendTest(p, number) }
}

// single makes the request of a single message.
func (in *Intake) single(ctx context.Context, p *accounts.Principal, req Single, kind kind) (*request, error) {
	carrier, ok := sms.SandboxCarrier, true
	if kind != kindSandbox {
		carrier, ok = in.Route(req.Number)
	}
	switch {
	case !ok:
		return nil, RefuseNoCarrier
	case kind == kindSingle && !in.WorksAt(p.Company, req.Sender, carrier):
		return nil, RefuseUnregistered
	}
	body, encoding, segments := size(p.Company.SmartEncoding, req.Message)
	if segments > in.opts.MaxSegments {
		return nil, RefuseTooLong
	}
	m := &messages.Message{
		ULID: in.ulids.next(), CompanyID: p.Company.ID, UserID: p.UserID, Number: req.Number, Sender: req.Sender, Body: body,
		Encoding: encoding, Segments: segments, Carrier: carrier, Test: kind != kindSingle, Validity: in.opts.Validity,
		Reference:  req.Reference,
		CostCenter: req.CostCenter,
	}
	req.Schedule.of(m, postgres.Now())
	r := &request{
		user: p.UserID, company: p.Company.ID, ref: m.ULID, kind: kind, segments: segments, messages: []*messages.Message{m},
		response: func(remaining int64) any {
			return Accepted{ID: m.ULID, ItemCount: segments, RemainingItems: remaining, Status: "queued", To: m.Number,
				Sender: m.Sender, Message: textQueued}
		},
	}
	switch kind {
	case kindTest:
		r.refusal = RefuseTestQuota
	case kindSandbox: // same response as for a test message; the pool is unchanged
		used, err := billing.New(in.pool).TestUsed(ctx, sms.CompanyID(p.Company.ID))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		answer := r.response
		r.left = int64(max(0, in.opts.TestQuota-used))
		r.refusal, r.response = RefuseSandboxQuota, func(int64) any { return answer(r.left) }
	default:
		r.refusal, r.optOuts = RefuseCredits("message", strconv.Itoa(segments)), p.Company.OptOuts
	}
	if first := req.First; first != nil { // a closure of req would put it on the heap for each message
		r.first = func(ctx context.Context, tx pgx.Tx) (verdict, err error) { return first(ctx, tx, m.ULID) }
	}
	return r, nil
}

// IsTestSender reports whether a name is the test sender's.
func (in *Intake) IsTestSender(name string) bool { return name != "" && name == in.opts.TestSender }

// maySendAs checks the rules of a sender.
func maySendAs(company *accounts.Company, name string) error {
	switch sender, known := company.Senders[name]; {
	case !known:
		return RefuseSenderUnknown
	case !sender.Approved:
		return RefuseSenderUnready
	}
	return nil
}

// WorksAt reports whether a company's sender works at a carrier, as its configuration is now.
func (in *Intake) WorksAt(company *accounts.Company, sender, carrier string) bool {
	return company.Senders[sender].WorksAt(carrier, in.Routes().Registration(carrier))
}

// maySendTest checks rule api 4.4.
func maySendTest(p *accounts.Principal, number sms.Number) error {
	switch {
	case p.TestNumber == "":
		return RefuseNoTestNumber
	case p.TestNumber != number:
		return RefuseOtherTestNumber
	}
	return nil
}

// Preview returns the text as sent. It differs from text only if the company has smart encoding.
func Preview(company *accounts.Company, text string) string {
	body, _, _ := size(company.SmartEncoding, text)
	return body
}

// Render returns a template's text for one recipient, or the refusal that a template send to them alone would get.
func (in *Intake) Render(company *accounts.Company, template *sms.Template, variables map[string]*string) (
	string, error) {
	if missing := template.Missing(variables); missing != nil {
		return "", RefuseVariables(ordinal(0), missing)
	}
	text := template.Render(variables)
	switch _, _, segments := size(company.SmartEncoding, text); {
	case segments == 0:
		return "", RefuseRecipientEmpty(ordinal(0))
	case segments > in.opts.MaxSegments:
		return "", RefuseRecipientLong(ordinal(0))
	}
	return text, nil
}
