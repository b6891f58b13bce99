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

// BatchAccepted is the answer to a bulk or template send (rule api 2.2).
type BatchAccepted struct {
	BatchID         ulid.ULID `json:"batch_id"`
	Status          string    `json:"status"`
	Sender          string    `json:"sender"`
	RecipientsCount int       `json:"recipients_count"`
	ItemCount       int       `json:"item_count"`
	RemainingItems  int64     `json:"remaining_items"`
}

// Bulk is a valid bulk send (rule api 4.2): 1 to 500 messages.
type Bulk struct {
	Sender   string
	Messages []BulkMessage
	Key      *Key
	Schedule Schedule
}

// BulkMessage is one of them.
type BulkMessage struct {
	Number    sms.Number
	Message   string
	Reference string // the customer's own name for it; "": none
}

// Template is a valid template send (rule api 4.3): 1 to 500 recipients.
type Template struct {
	Sender     string
	Template   *sms.Template
	Recipients []TemplateRecipient
	Key        *Key
	Schedule   Schedule
}

// TemplateRecipient is one of them. A nil variable is null; one that is not
// there is missing.
type TemplateRecipient struct {
	Number    sms.Number
	Variables map[string]*string
	Reference string // the customer's own name for the message; "": none
}

// SendBulk accepts all messages of a bulk send or none of them. It returns
// what Send returns.
func (in *Intake) SendBulk(ctx context.Context, p *accounts.Principal, req Bulk) (Answer, error) {
	return in.sendBatch(ctx, p, req.Key, batch{
		kind: kindBulk, sender: req.Sender, size: len(req.Messages), schedule: req.Schedule,
		number:    func(i int) sms.Number { return req.Messages[i].Number },
		text:      func(i int) string { return req.Messages[i].Message },
		reference: func(i int) string { return req.Messages[i].Reference },
	})
}

// SendTemplate accepts all messages of a template send or none of them. It
// returns what Send returns.
func (in *Intake) SendTemplate(ctx context.Context, p *accounts.Principal, req Template) (Answer, error) {
	return in.sendBatch(ctx, p, req.Key, batch{
		kind: kindTemplate, sender: req.Sender, size: len(req.Recipients), schedule: req.Schedule,
		number:    func(i int) sms.Number { return req.Recipients[i].Number },
		text:      func(i int) string { return req.Template.Render(req.Recipients[i].Variables) },
		reference: func(i int) string { return req.Recipients[i].Reference },
		missing: func() error {
			for i := range req.Recipients {
				if missing := req.Template.Missing(req.Recipients[i].Variables); missing != nil {
					return RefuseVariables(ordinal(i), missing)
				}
			}
			return nil
		},
	})
}

// batch is what bulk and template sends have in common.
type batch struct {
	kind      kind
	sender    string
	size      int
	schedule  Schedule
	number    func(i int) sms.Number
	text      func(i int) string
	reference func(i int) string
	missing   func() error // the refusal for missing template variables; nil: there are none
}

func (in *Intake) sendBatch(ctx context.Context, p *accounts.Principal, key *Key, b batch) (Answer, error) {
	return in.accept(ctx, p, key,
		func(p *accounts.Principal) error { return in.maySendBatch(p, b) },
		func(p *accounts.Principal) (*request, error) { return in.batch(p, b) })
}

// maySendBatch checks the rules that are about the caller, in the order of
// rule api 7.2.
func (in *Intake) maySendBatch(p *accounts.Principal, b batch) error {
	switch {
	case p.Company == nil:
		return RefuseNoCompany
	case in.isTestSender(b.sender):
		return RefuseTestSender(in.opts.TestSender)
	case !p.Company.Approved:
		return RefuseNotApproved
	case !p.Company.Verified:
		return RefuseNotVerified
	}
	if err := maySendAs(p.Company, b.sender); err != nil {
		return err
	}
	telco := p.Company.Senders[b.sender].Country
	for i := range b.size {
		if phone := b.number(i).Country(); phone != telco {
			return RefuseCountry(phone, telco)
		}
	}
	return nil
}

// batch makes the request of a batch: carriers, then missing variables, then the
// texts, each by the first recipient who fails.
func (in *Intake) batch(p *accounts.Principal, b batch) (*request, error) {
	routes := in.routes.Load()
	slab := make([]messages.Message, b.size)
	for i := range slab {
		m := &slab[i]
		m.Number = b.number(i)
		var ok bool
		if m.Carrier, ok = routes.Carrier(m.Number); !ok {
			return nil, RefuseRecipientCarrier(ordinal(i))
		}
	}
	if b.missing != nil {
		if err := b.missing(); err != nil {
			return nil, err
		}
	}
	now := postgres.Now()
	schedule, err := in.afterQuiet(p.Company, b.schedule, now)
	if err != nil {
		return nil, err
	}
	record := &messages.Batch{ULID: in.ulids.one(), CompanyID: p.Company.ID, UserID: p.UserID, Kind: b.kind.String(), Sender: b.sender, Recipients: b.size,
		SendAt: schedule.SendAt, ExpireAt: schedule.ExpireAt}
	all := make([]*messages.Message, b.size)
	for i := range slab {
		m := &slab[i]
		m.Body, m.Encoding, m.Segments = size(p.Company.SmartEncoding, b.text(i))
		switch {
		case m.Segments == 0:
			return nil, RefuseRecipientEmpty(ordinal(i))
		case m.Segments > in.opts.MaxSegments:
			return nil, RefuseRecipientLong(ordinal(i))
		}
		m.CompanyID, m.UserID, m.Batch, m.Sender, m.Validity = p.Company.ID, p.UserID, record, b.sender, in.opts.Validity
		m.Reference = b.reference(i)
		schedule.of(m, now)
		record.Segments += m.Segments
		all[i] = m
	}
	in.ulids.all(slab)
	return &request{
		user: p.UserID, company: p.Company.ID, ref: record.ULID, kind: b.kind, segments: record.Segments,
		messages: all, refusal: RefuseCredits("batch", strconv.Itoa(record.Segments)), optOuts: p.Company.OptOuts,
		response: func(remaining int64) any {
			return BatchAccepted{BatchID: record.ULID, Status: "queued", Sender: b.sender, RecipientsCount: b.size, ItemCount: record.Segments, RemainingItems: remaining}
		},
	}, nil
}
