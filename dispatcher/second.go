package dispatcher

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// Why a second carrier is asked. A closed set: it labels a metric.
const (
	unroutable  = "unroutable"  // a submit_sm_resp says that there is no way to the number
	undelivered = "undelivered" // a receipt says UNDELIV soon after the acceptance
)

var secondReasons = [...]string{unroutable, undelivered}

// undeliv is the word of such a receipt, as it begins the reason of a verdict.
const undeliv = "UNDELIV"

// sentOn are the messages that a second carrier has taken in one transaction, with
// why they would have failed.
type sentOn map[int64]string

// askSecond has a carrier's second one take what fails here, as far as it may be asked
// (rule choices 5.8): of the verdicts, which are those of receipts, and of what the plan
// says of refusals. What it takes neither fails nor is the carrier's any more. The caller
// holds the carrier's lock. Who settles receipts without results has an empty plan.
func (d *Dispatcher) askSecond(ctx context.Context, tx pgx.Tx, c *carrier, p *plan, verdicts []messages.Final) (sentOn, error) {
	conf := c.config()
	if conf.SecondCarrier == "" {
		return nil, nil
	}
	why := sentOn{}
	var list []messages.Onward
	for id, reason := range p.elsewhere {
		why[id] = unroutable
		list = append(list, messages.Onward{MessageID: id, Reason: reason, Epoch: p.ended[id]})
	}
	if conf.SecondWithin > 0 {
		for _, f := range verdicts {
			if _, listed := why[f.MessageID]; !listed && f.Status == sms.Failed && strings.HasPrefix(f.Reason, undeliv) {
				why[f.MessageID] = undelivered
				list = append(list, messages.Onward{MessageID: f.MessageID, Reason: f.Reason, Epoch: p.ended[f.MessageID]})
			}
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	serves, err := d.serves(ctx, tx, conf.SecondCarrier)
	if err != nil || !serves {
		return nil, err
	}
	ids, err := d.carrying.SendOn(ctx, tx, messages.Second{Dispatcher: d.member.id.Load(), From: c.name, To: conf.SecondCarrier,
		Within: conf.SecondWithin, Validity: d.opts.Validity}, list)
	if err != nil {
		return nil, err
	}
	sent := make(sentOn, len(ids))
	for _, id := range ids {
		sent[id] = why[id]
	}
	return sent, nil
}

// before finds out, for the repetition of a settlement whose COMMIT was not answered, what
// that transaction has written: everything, where one of its segments is recorded, and else
// at least the messages that a second carrier has taken. It takes the carrier's lock: the
// first transaction has ended by then. What is found may be on no standby yet.
func (s *settler) before(ctx context.Context, tx pgx.Tx, w *settlement, p *plan) (sent sentOn, written bool, err error) {
	if !w.again {
		return nil, false, nil
	}
	if err := errors.Join(s.carrier.matcher.Lock(ctx, tx), postgres.ConfirmWith(ctx, tx)); err != nil {
		return nil, false, err
	}
	if written, err = s.carrier.matcher.Written(ctx, tx, p.segments); err != nil {
		return nil, false, err
	}
	var ids []int64
	for _, m := range p.order {
		ids = append(ids, m.msg.ID)
	}
	for _, a := range w.late {
		ids = append(ids, a.messageID)
	}
	taken, err := s.d.carrying.SentOn(ctx, tx, s.carrier.name, ids)
	if err != nil {
		return nil, false, err
	}
	sent = make(sentOn, len(taken))
	for _, id := range taken {
		sent[id] = undelivered
		if _, refused := p.elsewhere[id]; refused {
			sent[id] = unroutable
		}
	}
	return sent, written, nil
}

// ends leaves out of the ends of attempts what was sent on.
func (s sentOn) ends(e messages.Ends) messages.Ends {
	if len(s) == 0 {
		return e
	}
	claimed := func(c messages.Claim) bool { return s.has(c.MessageID) }
	e.Carried, e.Held = slices.DeleteFunc(slices.Clone(e.Carried), claimed), slices.DeleteFunc(slices.Clone(e.Held), claimed)
	e.Retries = slices.DeleteFunc(slices.Clone(e.Retries), func(r messages.Retry) bool { return claimed(r.Claim) })
	e.Done = slices.DeleteFunc(slices.Clone(e.Done), s.has)
	return e
}

func (s sentOn) has(id int64) bool {
	_, has := s[id]
	return has
}

// fail leaves out what does not fail after all.
func (s sentOn) fail(finals []messages.Final) []messages.Final {
	return slices.DeleteFunc(slices.Clone(finals), func(f messages.Final) bool { return s.has(f.MessageID) })
}

// tellSentOn counts what a second carrier has taken, once that is committed.
func (d *Dispatcher) tellSentOn(c *carrier, sent sentOn) {
	if len(sent) == 0 {
		return
	}
	second := c.config().SecondCarrier
	for _, why := range sent {
		d.metrics.sentOn.WithLabelValues(c.name, second, why).Inc()
	}
	d.log.Info("a second carrier is asked for messages that failed", "carrier", c.name, "second", second, "messages", len(sent))
}
