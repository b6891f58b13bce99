package letters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"intumwa/accounts"
	"intumwa/accounts/letter"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/internal/mail"
	"intumwa/texts"
)

// mailOf makes a letter's mail from the current state; nil without a recipient, or if the reason no longer holds.
func (d *Letters) mailOf(ctx context.Context, to letter.Letter) (*mail.Message, error) {
	var company accounts.Company
	var owner people.User
	var err error
	if to.Company != 0 {
		company, err = d.companies.CompanyByID(ctx, to.Company)
	} else {
		company.OwnerID = to.Subject
	}
	if err == nil {
		owner, err = d.people.UserByID(ctx, company.OwnerID)
	}
	var sender senders.SenderRequest
	if err == nil && to.Kind == letter.Sender {
		sender, err = d.senders.SenderByID(ctx, to.Subject)
	}
	var at senders.Registration
	if err == nil && to.Kind == letter.Registration {
		at, err = d.senders.RegistrationByID(ctx, to.Subject)
	}
	if errors.Is(err, accounts.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l, ok := d.words.ByTag(owner.Language)
	if !ok {
		l = d.words.Languages[0]
	}
	var subject string
	var paragraphs []string
	switch to.Kind {
	case letter.Approval:
		subject, paragraphs = l.T("mail.approved.subject"), []string{l.T("mail.approved.text"), d.link("/")}
		if !company.Approved {
			subject, paragraphs = l.T("mail.disapproved.subject"), []string{l.T("mail.disapproved.text"), d.link("/company")}
		}
	case letter.Review:
		subject, paragraphs = l.T("mail.verified.subject"), []string{l.T("mail.verified.text"), d.link("/campaigns")}
		switch {
		case !company.Verified:
			subject, paragraphs = l.T("mail.unverified.subject"), []string{l.T("mail.unverified.text"), d.link("/company")}
		case !company.Approved:
			paragraphs[0] = l.T("mail.verified.waits")
		}
	case letter.Sender:
		subject, paragraphs = d.answered(l, sender)
	case letter.Registration:
		switch at.State {
		case senders.RegistrationApproved:
			subject, paragraphs = l.T("mail.registration.approved.subject", at.Sender, at.Carrier),
				[]string{l.T("mail.registration.approved.text", at.Sender, at.Carrier), d.link("/senders")}
		case senders.RegistrationRefused:
			subject, paragraphs = l.T("mail.registration.refused.subject", at.Sender, at.Carrier),
				[]string{l.T("mail.registration.refused.text", at.Sender, at.Carrier), at.Reason, d.link("/senders")}
		}
	case letter.Balance:
		var data letter.BalanceValues
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.low.subject"), []string{l.T("mail.low.text", data.Credits, data.Threshold),
			d.link("/statement"), l.T("mail.low.settings")}
		if data.Unanswered {
			subject, paragraphs = l.T("mail.unanswered.subject"), []string{l.T("mail.unanswered.text"), d.link("/statement"),
				l.T("mail.unanswered.kept"), d.link("/conversations")}
		}
	case letter.Webhook:
		var data failing
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.failing.subject"),
			[]string{l.T("mail.failing.text", l.Time(data.Since)), l.T("mail.failing.next"),
				d.link("/deliveries?state=failed"), l.T("mail.failing.daily")}
	case letter.Endpoint:
		var data letter.EndpointValues
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.endpoint.subject"),
			[]string{l.T("mail.endpoint.text", data.URL), l.T("mail.endpoint.next"), d.link("/account")}
		switch {
		case data.Given:
			subject, paragraphs = l.T("mail.rotated.subject"),
				[]string{l.T("mail.endpoint.text", data.URL), l.T("mail.given.text"), l.T("mail.notyou"), d.link("/password")}
		case data.Rotated:
			subject, paragraphs = l.T("mail.rotated.subject"), []string{l.T("mail.rotated.text", data.URL), l.T("mail.notyou"),
				d.link("/password")}
		}
	case letter.Contacts:
		var data letter.ContactsValues
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.contacts.subject"), []string{l.N("mail.contacts.text", data.Contacts, data.By),
			l.T("mail.contacts.next"), d.link("/people")}
		if data.By == "" {
			paragraphs[0] = l.N("mail.contacts.operator", data.Contacts)
		}
	case letter.Order:
		if d.operator == "" {
			return nil, nil
		}
		var data letter.OrderValues
		err = json.Unmarshal(to.Values, &data)
		l, owner.Email = d.words.Languages[0], d.operator
		subject, paragraphs = l.T("mail.order.subject", to.Subject),
			[]string{l.N("mail.order.text", data.Credits, company.Name), d.link(orderPath("/admin", to.Subject))}
	case letter.OrderPaid:
		var data letter.OrderValues
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.paid.subject", to.Subject),
			[]string{l.N("mail.paid.text", data.Credits, data.Document), d.link(orderPath("", to.Subject))}
	case letter.OrderStopped:
		var data letter.OrderValues
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.stopped.subject", to.Subject),
			[]string{l.N("mail.stopped.text", data.Credits), data.Reason, d.link(orderPath("", to.Subject))}
	case letter.CreditNote:
		var data letter.OrderValues
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.credited.subject", data.Document),
			[]string{l.N("mail.credited.text", data.Credits), data.Reason, d.link("/invoices/" + data.Document)}
	case letter.Tries:
		subject, paragraphs = l.T("mail.tries.subject"), []string{l.T("mail.tries.text"), l.T("mail.tries.next"),
			d.link("/password"), l.T("mail.tries.daily")}
	case letter.Password:
		subject, paragraphs = l.T("mail.password.subject"),
			[]string{l.T("mail.password.text"), l.T("mail.notyou"), d.link("/password")}
	case letter.TwoStep:
		subject, paragraphs = l.T("mail.twostep.subject"),
			[]string{l.T("mail.twostep.text"), l.T("mail.notyou"), d.link("/password")}
	case letter.Reset:
		subject, paragraphs = l.T("mail.voided.subject"), []string{l.T("mail.voided.text"), d.link("/password")}
	case letter.Key:
		var data letter.KeyValues
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.key.subject"), []string{l.T("mail.key.text", data.Name), l.T("mail.key.next"),
			d.link("/keys")}
	}
	if err != nil || subject == "" {
		return nil, err
	}
	m := Mail(l, to.Kind, owner.Email, subject, paragraphs...)
	return &m, nil
}

// answered returns the mail about the decision on a sender ID; empty while it waits.
func (d *Letters) answered(l *texts.Language, s senders.SenderRequest) (subject string, paragraphs []string) {
	switch {
	case s.State() == senders.Approved:
		return l.T("mail.sender.approved.subject", s.Name),
			[]string{l.T("mail.sender.approved.text", s.Name), d.link("/messages/new")}
	case s.State() == senders.Refused && s.Refusal != "":
		return l.T("mail.sender.refused.subject", s.Name), []string{l.T("mail.sender.refused.text", s.Name), s.Refusal,
			l.T("mail.sender.refused.again"), d.link("/senders")}
	case s.State() == senders.Refused:
		return l.T("mail.sender.refused.subject", s.Name), []string{l.T("mail.sender.taken", s.Name), d.link("/senders")}
	}
	return "", nil
}

// orderPath is the page of an order.
func orderPath(of string, id int64) string { return fmt.Sprintf("%s/orders/%d", of, id) }

func (d *Letters) link(path string) string { return d.publicURL + path }

// Mail makes a mail of paragraphs. Never pass text from visitors without a session: they could send it to others
// through us.
func Mail(l *texts.Language, kind, to, subject string, paragraphs ...string) mail.Message {
	text := strings.Join(append(append([]string{l.T("mail.hello")}, paragraphs...), l.T("mail.signature")), "\n\n") + "\n"
	return mail.Message{Kind: kind, To: to, Subject: subject, Text: text}
}
