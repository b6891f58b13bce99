package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"intumwa/accounts"
	"intumwa/dashboard/words"
	"intumwa/internal/mail"
	"intumwa/internal/postgres"
)

// Letters ([accounts.Letter]) are mails that must not be lost: decisions about a company and its sender IDs, a low
// balance, a failing endpoint, changes of an account's protection. A letter is sent twice only if its process dies
// between the mail server's response and the deletion.
const (
	lettersEvery     = 15 * time.Second // and on notice of a decision
	lettersAtOnce    = 20
	letterLease      = 15 * time.Minute // longer than sending lettersAtOnce may take; then another process tries
	letterRetryPause = time.Minute      // after the first failure, doubling
	letterLongest    = time.Hour
	letterMaxAge     = 3 * 24 * time.Hour // an older letter is dropped
)

type webhookLetter struct {
	Since time.Time `json:"since"`
}

// WakeLetters makes Run look for letters. It handles notices about companies, and never blocks.
func (d *Dashboard) WakeLetters(string) {
	select {
	case d.lettersWake <- struct{}{}:
	default:
	}
}

// runLetters sends the stored letters until ctx ends.
func (d *Dashboard) runLetters(ctx context.Context) {
	tick := time.NewTicker(lettersEvery)
	defer tick.Stop()
	for {
		for more := true; more && ctx.Err() == nil; {
			n, err := d.sendLetters(ctx)
			if err != nil && ctx.Err() == nil {
				d.log.Error("mails to company owners could not be sent; trying again", "event", "owner_mails_not_sent", "error", err)
			}
			more = err == nil && n == lettersAtOnce
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-d.lettersWake:
		}
	}
}

// sendLetters sends some of the due letters and returns their number.
func (d *Dashboard) sendLetters(ctx context.Context) (int, error) {
	due, err := d.rooms.Accounts.TakeLetters(ctx, letterLease, lettersAtOnce)
	if err != nil {
		return 0, err
	}
	for _, l := range due {
		if err := d.sendLetter(ctx, l); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// sendLetter sends a letter, or postpones it. A letter that was rewritten meanwhile stays.
func (d *Dashboard) sendLetter(ctx context.Context, l accounts.Letter) error {
	m, err := d.mailOf(ctx, l)
	if err != nil {
		return fmt.Errorf("writing a mail of kind %s: %w", l.Kind, err)
	}
	done := m == nil || d.rooms.Mailer.Deliver(ctx, *m, l.Tries, postgres.Now().Sub(l.Written) > letterMaxAge)
	if !done && ctx.Err() != nil {
		l.Tries = 1 // this process is shutting down: another one tries soon
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if done {
		return d.rooms.Accounts.DropLetter(ctx, l)
	}
	return d.rooms.Accounts.PostponeLetter(ctx, l, min(letterRetryPause<<min(l.Tries-1, 10), letterLongest))
}

// mailOf makes a letter's mail from the current state; nil without a recipient, or if the reason no longer holds.
func (d *Dashboard) mailOf(ctx context.Context, to accounts.Letter) (*mail.Message, error) {
	var company accounts.Company
	var owner accounts.User
	var err error
	if to.Company != 0 {
		company, err = d.rooms.Accounts.CompanyByID(ctx, to.Company)
	} else {
		company.OwnerID = to.Subject
	}
	if err == nil {
		owner, err = d.rooms.Accounts.UserByID(ctx, company.OwnerID)
	}
	var sender accounts.SenderRequest
	if err == nil && to.Kind == accounts.LetterSender {
		sender, err = d.rooms.Accounts.SenderByID(ctx, to.Subject)
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
	case accounts.LetterApproval:
		subject, paragraphs = l.T("mail.approved.subject"), []string{l.T("mail.approved.text"), d.link("/")}
		if !company.Approved {
			subject, paragraphs = l.T("mail.disapproved.subject"), []string{l.T("mail.disapproved.text"), d.link("/company")}
		}
	case accounts.LetterVerification:
		subject, paragraphs = l.T("mail.verified.subject"), []string{l.T("mail.verified.text"), d.link("/campaigns")}
		switch {
		case !company.Verified:
			subject, paragraphs = l.T("mail.unverified.subject"), []string{l.T("mail.unverified.text"), d.link("/company")}
		case !company.Approved:
			paragraphs[0] = l.T("mail.verified.waits")
		}
	case accounts.LetterSender:
		subject, paragraphs = d.answered(l, sender)
	case accounts.LetterBalance:
		var data accounts.BalanceLetter
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.low.subject"), []string{l.T("mail.low.text", data.Credits, data.Threshold), d.link("/statement"), l.T("mail.low.settings")}
	case accounts.LetterWebhook:
		var data webhookLetter
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.failing.subject"), []string{l.T("mail.failing.text", l.Time(data.Since)), l.T("mail.failing.next"),
			d.link("/deliveries?state=failed"), l.T("mail.failing.daily")}
	case accounts.LetterEndpoint:
		var data accounts.EndpointLetter
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.endpoint.subject"), []string{l.T("mail.endpoint.text", data.URL), l.T("mail.endpoint.next"), d.link("/account")}
		if data.Rotated {
			subject, paragraphs = l.T("mail.rotated.subject"), []string{l.T("mail.rotated.text", data.URL), l.T("mail.notyou"), d.link("/password")}
		}
	case accounts.LetterTries:
		subject, paragraphs = l.T("mail.tries.subject"), []string{l.T("mail.tries.text"), l.T("mail.tries.next"), d.link("/password"), l.T("mail.tries.daily")}
	case accounts.LetterPassword:
		subject, paragraphs = l.T("mail.password.subject"), []string{l.T("mail.password.text"), l.T("mail.notyou"), d.link("/password")}
	case accounts.LetterTwoStep:
		subject, paragraphs = l.T("mail.twostep.subject"), []string{l.T("mail.twostep.text"), l.T("mail.notyou"), d.link("/password")}
	case accounts.LetterReset:
		subject, paragraphs = l.T("mail.voided.subject"), []string{l.T("mail.voided.text"), d.link("/password")}
	case accounts.LetterKey:
		var data accounts.KeyLetter
		err = json.Unmarshal(to.Values, &data)
		subject, paragraphs = l.T("mail.key.subject"), []string{l.T("mail.key.text", data.Name), l.T("mail.key.next"), d.link("/keys")}
	}
	if err != nil || subject == "" {
		return nil, err
	}
	m := newMail(l, to.Kind, owner.Email, subject, paragraphs...)
	return &m, nil
}

// answered returns the mail about the decision on a sender ID; empty while it waits.
func (d *Dashboard) answered(l *words.Language, s accounts.SenderRequest) (subject string, paragraphs []string) {
	switch {
	case s.State() == accounts.SenderApproved:
		return l.T("mail.sender.approved.subject", s.Name), []string{l.T("mail.sender.approved.text", s.Name), d.link("/messages/new")}
	case s.State() == accounts.SenderRefused && s.Refusal != "":
		return l.T("mail.sender.refused.subject", s.Name), []string{l.T("mail.sender.refused.text", s.Name), s.Refusal, l.T("mail.sender.refused.again"), d.link("/senders")}
	case s.State() == accounts.SenderRefused:
		return l.T("mail.sender.refused.subject", s.Name), []string{l.T("mail.sender.taken", s.Name), d.link("/senders")}
	}
	return "", nil
}

// link returns an address of this dashboard for a mail. It does not use the request's Host, which is untrusted.
func (d *Dashboard) link(path string) string { return d.opts.PublicURL + path }

// newMail makes a mail of paragraphs. Never pass text from visitors without a session: they could send it to others
// through us.
func newMail(l *words.Language, kind, to, subject string, paragraphs ...string) mail.Message {
	text := strings.Join(append(append([]string{l.T("mail.hello")}, paragraphs...), l.T("mail.signature")), "\n\n") + "\n"
	return mail.Message{Kind: kind, To: to, Subject: subject, Text: text}
}

// send queues a mail that its recipient can request again after a loss. For other mails use [accounts.WriteLetter].
func (d *Dashboard) send(l *words.Language, kind, to, subject string, paragraphs ...string) {
	d.rooms.Mailer.Send(newMail(l, kind, to, l.T(subject), paragraphs...))
}

func (d *Dashboard) mailSignUp(l *words.Language, to, token string) {
	d.send(l, "sign-up", to, "mail.signup.subject", l.T("mail.signup.text"),
		d.link("/sign-up/"+token), l.T("mail.hour"), l.T("mail.ignore"))
}

// mailInvitation names the inviting person by their verified address, never by text of their choice.
func (d *Dashboard) mailInvitation(l *words.Language, to, from, token string) {
	d.send(l, "invitation", to, "mail.invitation.subject", l.T("mail.invitation.text", from),
		d.link("/invitation/"+token), l.T("mail.invitation.days", int(accounts.InvitationLife.Hours()/24)), l.T("mail.ignore.invitation"))
}

// mailExists is the mail to a registered user who signs up again.
func (d *Dashboard) mailExists(l *words.Language, to string) {
	d.send(l, "sign-up-again", to, "mail.signup.subject", l.T("mail.exists.text"),
		d.link("/sign-in"), l.T("mail.exists.forgotten"), d.link("/password"), l.T("mail.exists.ignore"))
}

func (d *Dashboard) mailReset(l *words.Language, to, token string) {
	d.send(l, "password", to, "mail.reset.subject", l.T("mail.reset.text"),
		d.link("/password/"+token), l.T("mail.hour"), l.T("mail.ignore"))
}
