package intake

import (
	"context"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// BatchAccepted is the response to a bulk or template send (rule api 2.2).
type BatchAccepted struct {
	BatchID         ulid.ULID `json:"batch_id"`
	Status          string    `json:"status"`
	Sender          string    `json:"sender"`
	RecipientsCount int       `json:"recipients_count"`
	ItemCount       int       `json:"item_count"`
	RemainingItems  int64     `json:"remaining_items"`

	LeftOut map[string]int `json:"left_out,omitempty"` // members of a group, by reason
}

// Batch is a valid bulk or template send (rule api 4.2, 4.3): 1 to 500 messages, or a part of a campaign.
type Batch struct {
	Sender     string
	Template   *sms.Template // nil: a bulk send with a text for each recipient
	Recipients []Recipient
	Key        *Key
	Schedule   Schedule
	Name       string // the customer's own name; "": none
	CostCenter string // the customer's own label of its messages; "": none
	Part       *Part  // nil: the batch is whole

	// Members returns the recipients of a batch to a group, once it is known that the batch is no repetition. Its errors
	// refuse the batch. nil: the recipients are given.
	Members func(ctx context.Context, company int64) ([]Recipient, error)
	leftOut map[string]int // of the members, by reason
}

// SendBatch accepts all messages of a batch or none. It returns what Send returns.
func (in *Intake) SendBatch(ctx context.Context, p *accounts.Principal, b Batch) (Answer, error) {
	return in.accept(ctx, p, b.Key,
		func(p *accounts.Principal) error { return in.maySendBatch(p, &b) },
		func(p *accounts.Principal) (*request, error) {
			if b.Members != nil {
				if err := in.readMembers(ctx, p, &b); err != nil {
					return nil, err
				}
			}
			return in.batch(p, &b)
		})
}

// maySendBatch checks the rules about the caller, in the order of rule api 7.2.
func (in *Intake) maySendBatch(p *accounts.Principal, b *Batch) error {
	switch {
	case in.IsTestSender(b.Sender):
		return RefuseTestSender(in.opts.TestSender)
	case !p.Company.Approved:
		return RefuseNotApproved
	case !p.Company.Verified:
		return RefuseNotVerified
	}
	if err := maySendAs(p.Company, b.Sender); err != nil {
		return err
	}
	telco := p.Company.Senders[b.Sender].Country
	for i := range b.Recipients {
		if phone := b.Recipients[i].Number.Country(); phone != telco {
			return RefuseCountry(phone, telco)
		}
	}
	return nil
}

// batch makes a batch's request. It checks carriers, then the sender there, then missing variables, then texts, and
// refuses by the first recipient who fails.
func (in *Intake) batch(p *accounts.Principal, b *Batch) (*request, error) {
	routes := in.table.Load()
	slab := make([]messages.Message, len(b.Recipients))
	for i := range slab {
		m := &slab[i]
		m.Number = b.Recipients[i].Number
		var ok bool
		if m.Carrier, ok = routes.Carrier(m.Number); !ok {
			return nil, at(i, RefuseRecipientCarrier(ordinal(i)))
		}
	}
	sender := p.Company.Senders[b.Sender]
	for i := range slab {
		if carrier := slab[i].Carrier; !sender.WorksAt(carrier, routes.Registration(carrier)) {
			return nil, at(i, RefuseRecipientUnregistered(ordinal(i)))
		}
	}
	kind := kindBulk
	if b.Template != nil {
		kind = kindTemplate
		for i := range b.Recipients {
			if missing := b.Template.Missing(b.Recipients[i].Variables); missing != nil {
				if contact := b.Recipients[i].Contact; contact != 0 {
					return nil, RefuseContact(contact, missing)
				}
				return nil, at(i, RefuseVariables(ordinal(i), missing))
			}
		}
	}
	now := postgres.Now()
	schedule, err := in.afterQuiet(p.Company, b.Schedule, now)
	if err != nil {
		return nil, err
	}
	record := &messages.Batch{ULID: in.ulids.next(), CompanyID: p.Company.ID, UserID: p.UserID, Kind: kind.String(),
		Name: b.Name, Sender: b.Sender, Recipients: len(b.Recipients),
		SendAt: schedule.SendAt, ExpireAt: schedule.ExpireAt}
	optOuts := p.Company.OptOuts
	if part := b.Part; part != nil {
		record.ULID, record.Part, record.Awaited = part.Of, part.Further, part.Awaited
		optOuts = optOuts && !part.Further
	}
	all := make([]*messages.Message, len(b.Recipients))
	for i := range slab {
		m, r := &slab[i], &b.Recipients[i]
		text := r.Message
		if b.Template != nil {
			text = b.Template.Render(r.Variables)
		}
		m.Body, m.Encoding, m.Segments = size(p.Company.SmartEncoding, text)
		switch {
		case m.Segments == 0:
			return nil, at(i, RefuseRecipientEmpty(ordinal(i)))
		case m.Segments > in.opts.MaxSegments:
			return nil, at(i, RefuseRecipientLong(ordinal(i)))
		}
		m.ULID, m.CompanyID, m.UserID, m.Batch, m.Sender = in.ulids.next(), p.Company.ID, p.UserID, record, b.Sender
		m.Validity, m.Reference, m.CostCenter = in.opts.Validity, r.Reference, b.CostCenter
		schedule.of(m, now)
		record.Segments += m.Segments
		all[i] = m
	}
	return &request{
		user: p.UserID, company: p.Company.ID, ref: record.ULID, kind: kind, segments: record.Segments,
		messages: all, refusal: RefuseCredits("batch", strconv.Itoa(record.Segments)), optOuts: optOuts, part: b.Part != nil,
		response: func(remaining int64) any {
			return BatchAccepted{BatchID: record.ULID, Status: "queued", Sender: b.Sender, RecipientsCount: len(slab),
				ItemCount: record.Segments, RemainingItems: remaining, LeftOut: b.leftOut}
		},
	}, nil
}

// afterQuiet postpones a batch from its company's quiet hours to their end.
func (in *Intake) afterQuiet(company *accounts.Company, s Schedule, now time.Time) (Schedule, error) {
	quiet := in.opts.QuietHours
	if company.QuietHours != "" {
		quiet, _ = sms.ParseQuietHours(company.QuietHours) // the database takes no invalid ones; they would count as none
	}
	begin := now
	if s.SendAt.After(now) {
		begin = s.SendAt
	}
	end, put := quiet.End(begin)
	if !put {
		return s, nil
	}
	if !s.ExpireAt.IsZero() && !s.ExpireAt.After(end) {
		return s, RefuseQuiet
	}
	s.SendAt = end
	return s, nil
}
