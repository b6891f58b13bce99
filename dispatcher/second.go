package dispatcher

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// The reasons for trying a second carrier. A closed set: they label a metric.
const (
	unroutable  = "unroutable"  // a submit_sm_resp: no route to the number
	undelivered = "undelivered" // a receipt with UNDELIV soon after the acceptance
)

var secondReasons = [...]string{unroutable, undelivered}

// secondTook maps messages that a second carrier took in one transaction to secondReasons.
type secondTook map[int64]string

// offerToSecond moves failing messages to the carrier's second carrier, where
// rule choices 5.8 allows it: refused ones from a, and those failed by receipts from
// verdicts. A message that the second carrier takes does not fail, and leaves the first
// carrier. The caller holds the carrier's lock.
func (d *Dispatcher) offerToSecond(ctx context.Context, tx pgx.Tx, c *carrier, a *attempts, verdicts []messages.Final) (secondTook, error) {
	conf := c.config()
	if conf.SecondCarrier == "" {
		return nil, nil
	}
	why := secondTook{}
	list := slices.Clone(a.elsewhere)
	for _, f := range list {
		why[f.MessageID] = unroutable
	}
	if conf.SecondWithin > 0 {
		for _, f := range verdicts {
			if !why.has(f.MessageID) && f.Status == sms.Failed && strings.HasPrefix(f.Reason, submission.Undeliv) {
				why[f.MessageID] = undelivered
				list = append(list, messages.Failing{MessageID: f.MessageID, Reason: f.Reason, Epoch: a.ended[f.MessageID]})
			}
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	serves, err := d.serves(ctx, tx, conf.SecondCarrier, d.opts.DeadAfter) // a starting process binds all its links at the same time
	if err != nil || !serves {
		return nil, err
	}
	ids, err := d.carrying.GiveToSecond(ctx, tx, messages.SecondCarrier{Dispatcher: d.member.id.Load(), From: c.name, To: conf.SecondCarrier,
		Within: conf.SecondWithin, Validity: d.opts.Validity}, list)
	if err != nil {
		return nil, err
	}
	took := make(secondTook, len(ids))
	for _, id := range ids {
		took[id] = why[id]
	}
	return took, nil
}

// before returns what the first transaction of a repeated settlement wrote, whose COMMIT was
// not answered. It wrote everything if one of its segments is recorded; otherwise before
// returns the messages that a second carrier has taken. It takes the carrier's lock, so the
// first transaction has ended by then. The rows may not be on a standby yet.
func (s *settler) before(ctx context.Context, tx pgx.Tx, w *settlement, p *plan) (took secondTook, written bool, err error) {
	if err := errors.Join(s.carrier.matcher().Lock(ctx, tx), postgres.ConfirmWith(ctx, tx)); err != nil {
		return nil, false, err
	}
	if written, err = s.carrier.matcher().Written(ctx, tx, p.segments); err != nil {
		return nil, false, err
	}
	var ids []int64
	refused := map[int64]bool{}
	for i, r := range w.results {
		ids = append(ids, r.message.msg.ID)
		refused[r.message.msg.ID] = refused[r.message.msg.ID] || p.next[i].effect.Elsewhere
	}
	for _, a := range w.late {
		ids = append(ids, a.messageID)
	}
	taken, err := s.d.carrying.TakenBySecond(ctx, tx, s.carrier.name, ids)
	if err != nil {
		return nil, false, err
	}
	took = make(secondTook, len(taken))
	for _, id := range taken {
		took[id] = undelivered
		if refused[id] {
			took[id] = unroutable
		}
	}
	return took, written, nil
}

// withoutAttempts removes the attempts of messages that the second carrier took.
func (s secondTook) withoutAttempts(e messages.Ends) messages.Ends {
	if len(s) == 0 {
		return e
	}
	claimed := func(c messages.Claim) bool { return s.has(c.MessageID) }
	e.Carried, e.Unanswered = slices.DeleteFunc(slices.Clone(e.Carried), claimed), slices.DeleteFunc(slices.Clone(e.Unanswered), claimed)
	e.Retries = slices.DeleteFunc(slices.Clone(e.Retries), func(r messages.Retry) bool { return claimed(r.Claim) })
	e.Done = slices.DeleteFunc(slices.Clone(e.Done), s.has)
	return e
}

func (s secondTook) has(id int64) bool {
	_, has := s[id]
	return has
}

// without removes the verdicts on messages that the second carrier took.
func (s secondTook) without(finals []messages.Final) []messages.Final {
	return slices.DeleteFunc(slices.Clone(finals), func(f messages.Final) bool { return s.has(f.MessageID) })
}

// countSecond counts the messages that a second carrier took, after the commit.
func (d *Dispatcher) countSecond(c *carrier, took secondTook) {
	if len(took) == 0 {
		return
	}
	second := c.config().SecondCarrier
	for _, why := range took {
		d.metrics.second.WithLabelValues(c.name, second, why).Inc()
	}
	d.log.Info("a second carrier takes messages that failed", "event", "second_carrier", "carrier", c.name, "second", second, "messages", len(took))
}
