package dispatcher

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

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

// askSecond has the carrier's second one take what fails here, as far as it may be
// asked (rule choices 5.8). What it takes neither fails nor is the carrier's any more;
// nor does what it took in a transaction whose COMMIT was not answered, where this is
// done again.
func (s *settler) askSecond(ctx context.Context, tx pgx.Tx, p *plan, verdicts []messages.Final, again bool) (sentOn, error) {
	before := sentOn{}
	if ids := slices.AppendSeq(slices.Clone(p.carried), maps.Keys(p.elsewhere)); again && len(ids) > 0 {
		taken, err := s.d.carrying.SentOn(ctx, tx, s.carrier.name, ids)
		if err != nil {
			return nil, err
		}
		for _, id := range taken {
			before[id] = undelivered
			if _, refused := p.elsewhere[id]; refused {
				before[id] = unroutable
			}
		}
	}
	sent, err := s.sendOn(ctx, tx, p, verdicts)
	maps.Copy(before, sent)
	return before, err
}

// sendOn is askSecond for what no second carrier has taken before.
func (s *settler) sendOn(ctx context.Context, tx pgx.Tx, p *plan, verdicts []messages.Final) (sentOn, error) {
	conf := s.carrier.config()
	if conf.SecondCarrier == "" {
		return nil, nil
	}
	if err := s.d.carrying.NeverSendOn(ctx, tx, s.carrier.name, p.doubtful); err != nil {
		return nil, err
	}
	why := sentOn{}
	var list []messages.Onward
	for id, reason := range p.elsewhere {
		why[id] = unroutable
		list = append(list, messages.Onward{MessageID: id, Reason: reason, InHand: true})
	}
	if conf.SecondWithin > 0 {
		for _, f := range verdicts {
			if _, listed := why[f.MessageID]; !listed && f.Status == sms.Failed && strings.HasPrefix(f.Reason, undeliv) {
				why[f.MessageID] = undelivered
				list = append(list, messages.Onward{MessageID: f.MessageID, Reason: f.Reason, InHand: slices.Contains(p.carried, f.MessageID)})
			}
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	serves, err := s.d.serves(ctx, tx, conf.SecondCarrier)
	if err != nil || !serves {
		return nil, err
	}
	ids, err := s.d.carrying.SendOn(ctx, tx, messages.Second{Dispatcher: s.d.member.id.Load(), From: s.carrier.name, To: conf.SecondCarrier,
		Within: conf.SecondWithin, Validity: s.d.opts.Validity}, list)
	if err != nil {
		return nil, err
	}
	sent := make(sentOn, len(ids))
	for _, id := range ids {
		sent[id] = why[id]
	}
	return sent, nil
}

// serves reports whether a link of a carrier can carry messages, wherever it is.
func (d *Dispatcher) serves(ctx context.Context, tx pgx.Tx, carrier string) (serves bool, err error) {
	if err := tx.QueryRow(ctx, `SELECT coalesce(now() - max(served_at) < $2::interval, false) FROM links WHERE carrier = $1`,
		carrier, d.opts.DeadAfter).Scan(&serves); err != nil {
		return false, fmt.Errorf("asking whether %s serves: %w", carrier, err)
	}
	return serves, nil
}

// keep leaves out what was sent on.
func (s sentOn) keep(ids []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { _, gone := s[id]; return gone })
}

// fail leaves out what does not fail after all.
func (s sentOn) fail(finals []messages.Final) []messages.Final {
	return slices.DeleteFunc(slices.Clone(finals), func(f messages.Final) bool { _, gone := s[f.MessageID]; return gone })
}

// tellSentOn counts what a second carrier has taken, once that is committed.
func (s *settler) tellSentOn(sent sentOn) {
	if len(sent) == 0 {
		return
	}
	second := s.carrier.config().SecondCarrier
	for _, why := range sent {
		s.d.metrics.sentOn.WithLabelValues(s.carrier.name, second, why).Inc()
	}
	s.d.log.Info("a second carrier is asked for messages that failed", "carrier", s.carrier.name, "second", second, "messages", len(sent))
}
