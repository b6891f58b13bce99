package settling

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/internal/postgres"
	"intumwa/messages/rerouting"
	"intumwa/messages/submission"
)

// offerToSecond moves failing messages to the carrier's second carrier, where rule choices 5.8 allows it. A message
// that the second carrier takes does not fail, and leaves the first carrier. The caller holds the carrier's lock.
func (s *Settler) offerToSecond(ctx context.Context, tx pgx.Tx, c *changes) (secondTook, error) {
	conf := s.Carrier.Config()
	if conf.SecondCarrier == "" {
		return nil, nil
	}
	list, why := c.failing(conf.SecondWithin > 0)
	if len(list) == 0 {
		return nil, nil
	}
	// a starting process binds all its links at the same time
	serves, err := core.Serves(ctx, tx, conf.SecondCarrier, s.Opts.DeadAfter)
	if err != nil || !serves {
		return nil, err
	}
	ids, err := s.Carrying.Rerouting.GiveToSecond(
		ctx, tx, rerouting.SecondCarrier{Dispatcher: s.Leases.ID.Load(), From: s.Carrier.Name, To: s.To(conf.SecondCarrier),
			Within: conf.SecondWithin, Validity: s.Opts.Validity}, list)
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
func (s *Settler) before(ctx context.Context, tx pgx.Tx, c *changes) (took secondTook, written bool, err error) {
	if err := errors.Join(s.Carrier.Matcher().Lock(ctx, tx), postgres.ConfirmWith(ctx, tx)); err != nil {
		return nil, false, err
	}
	if written, err = s.Carrier.Matcher().Written(ctx, tx, c.segments); err != nil {
		return nil, false, err
	}
	var ids []int64
	refused := map[int64]bool{}
	for i := range c.list {
		one := &c.list[i]
		ids = append(ids, one.id)
		refused[one.id] = refused[one.id] || slices.ContainsFunc(one.known.Results,
			func(r submission.Result) bool { return r.Elsewhere })
	}
	taken, err := s.Carrying.Rerouting.TakenBySecond(ctx, tx, s.Carrier.Name, ids)
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

// countSecond counts the messages that a second carrier took, after the commit.
func (s *Settler) countSecond(took secondTook) {
	if len(took) == 0 {
		return
	}
	second := s.Carrier.Config().SecondCarrier
	for _, why := range took {
		s.Metrics.Second.WithLabelValues(s.Carrier.Name, second, why).Inc()
	}
	s.Log.Info("a second carrier takes messages that failed", "event", "second_carrier", "carrier", s.Carrier.Name,
		"second", second, "messages", len(took))
}
