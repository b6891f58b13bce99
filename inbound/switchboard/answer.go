package switchboard

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"intumwa/contacts"
	"intumwa/inbound/handsets"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// answerPause is the shortest time between two messages from a number with the same keyword that are both answered: two
// gateways that answer each other stop after one message each.
const answerPause = 10 * time.Minute

// proofMost is how many characters of a message are the source of a consent.
const proofMost = 200

// follow does what a message's route demands besides giving it to its company: it changes the groups of its number, and
// sets the state of its answer. got is the message before it is stored.
func (b *Switchboard) follow(ctx context.Context, w *work, m *handsets.Inbound, c *command,
	got *handsets.Message) error {
	if c.route == nil {
		return nil
	}
	number, person := sms.FromCarrier(m.Source)
	own, err := person, error(nil)
	if person {
		own, err = b.own(ctx, w, m.Source)
	}
	if err != nil {
		return err
	}
	if c.route.Answer != "" {
		got.Keyword = c.route.Keyword
		if got.Answer, err = b.answers(ctx, w, c, got, number, own); err != nil {
			return err
		}
		w.answers[got.Answer]++
	}
	if person && !own && (c.route.Join != 0 || c.route.Leave != 0) {
		w.move = &move{c.route, number, contacts.Consent{Source: proof(got), At: got.At}}
	}
	return nil
}

// own reports whether an address is one of the gateway's: it has a route, or it is an approved sender.
func (b *Switchboard) own(ctx context.Context, w *work, address string) (bool, error) {
	routes, err := w.store.RoutesFrom(ctx, address)
	if err != nil || len(routes) > 0 {
		return true, err
	}
	digits := handsets.Address(address)
	for _, name := range []string{digits, strings.TrimPrefix(digits, "257")} {
		if owners, err := b.senders.In(w.tx).Namesakes(ctx, name, 0); err != nil || len(owners) > 0 {
			return true, err
		}
	}
	return false, nil
}

// answers returns whether a message is answered, or why not. number is "" for no person's.
func (b *Switchboard) answers(ctx context.Context, w *work, c *command, m *handsets.Message, number sms.Number,
	own bool) (handsets.AnswerState, error) {
	switch {
	case number == "":
		return handsets.AnswerNoPerson, nil
	case own:
		return handsets.AnswerOwn, nil
	case !c.route.Open(m.At):
		return handsets.AnswerClosed, nil
	}
	repeated, err := w.store.HadAnswer(ctx, c.company, m.From, m.Keyword, m.At, answerPause)
	if repeated {
		return handsets.AnswerRepeated, err
	}
	if err == nil && c.route.Join != 0 {
		err = b.contacts.MayJoin(ctx, w.tx, c.company, c.route.Join, number)
		if cannotJoin(err) { // nobody is welcomed, at the company's expense, who is no member
			return handsets.AnswerNoGroup, nil
		}
	}
	return handsets.AnswerDue, err
}

// move is a number that joins and leaves the groups of a route. The message is the proof of its consent.
type move struct {
	route   *handsets.Route
	number  sms.Number
	consent contacts.Consent
}

// regroup moves a number, at the end of its transaction, which moves no other: contacts are locked before groups. A
// group that is gone, or for which the company has too many contacts, changes nothing.
func (b *Switchboard) regroup(ctx context.Context, w *work) error {
	if w.move == nil {
		return nil
	}
	m, r := w.move, w.move.route
	leave := func() (err error) {
		if r.Leave != 0 {
			_, err = b.contacts.Leave(ctx, w.tx, r.CompanyID, r.Leave, m.number)
		}
		return err
	}
	join := func() (err error) {
		if r.Join != 0 {
			_, err = b.contacts.Join(ctx, w.tx, r.CompanyID, r.Join, m.number, m.consent)
		}
		if cannotJoin(err) {
			b.log.WarnContext(ctx, "a number cannot join the group of a route", "event", "group_not_joined", "route", r.ID,
				"company_id", r.CompanyID, "error", err)
			return nil
		}
		return err
	}
	first, second := leave, join
	if r.Join < r.Leave { // groups are locked by id
		first, second = join, leave
	}
	if err := first(); err != nil {
		return err
	}
	return second()
}

func cannotJoin(err error) bool {
	return errors.Is(err, contacts.ErrNoGroup) || errors.Is(err, contacts.ErrFull)
}

// proof returns a message as the source of a consent, in the form that one has: a line of printable characters.
func proof(m *handsets.Message) string {
	text := "SMS " + m.To + ": "
	if m.Body != nil {
		text += *m.Body
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, postgres.Text(text))
	r := []rune(strings.Join(strings.Fields(text), " "))
	return strings.TrimSpace(string(r[:min(len(r), proofMost)]))
}
