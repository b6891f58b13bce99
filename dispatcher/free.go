package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// freeClaims frees the claims of dead dispatchers if there may be any: after this process
// started, after a dispatcher died, and when the walk over the outbox found such a claim.
func (d *Dispatcher) freeClaims(ctx context.Context) error {
	if !d.deaths.unfreed.Swap(false) {
		return nil
	}
	err := d.free(ctx)
	if err != nil {
		d.deaths.unfreed.Store(true)
	}
	return err
}

// free frees the claims of dead dispatchers. It lists the claimants before the living, so a
// dispatcher that registers in between is not taken for dead, however long this process
// slept there.
func (d *Dispatcher) free(ctx context.Context) error {
	claimants, err := d.store.Claimants(ctx)
	if err != nil {
		return err
	}
	living, err := d.living(ctx)
	if err != nil {
		return err
	}
	dead := slices.DeleteFunc(claimants, func(id int64) bool { return slices.Contains(living, id) })
	if len(dead) == 0 {
		return nil
	}
	var failed error // one carrier's failure does not stop the others
	var decided []string
	for _, c := range append(d.removed(), d.running()...) {
		if state, _ := submission.Next(submission.InFlight, submission.OwnerDied{}, c.config().OnAmbiguous); state == submission.Unanswered {
			decided = append(decided, c.name)
			failed = errors.Join(failed, d.settleBegun(ctx, c, dead))
		}
	}
	n, err := d.store.Free(ctx, dead, decided)
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	if n > 0 {
		d.log.Warn("claims of a dead dispatcher freed", "event", "claims_freed", "messages", n)
	}
	return nil
}

func (d *Dispatcher) living(ctx context.Context) ([]int64, error) {
	return postgres.All(ctx, d.pool, "listing the dispatchers", pgx.RowTo[int64], `SELECT id FROM dispatchers`)
}

// settleBegun settles the messages that dead dispatchers may have been submitting
// to a carrier whose on_ambiguous is hold or fail.
func (d *Dispatcher) settleBegun(ctx context.Context, c *carrier, dead []int64) error {
	matcher := c.matcher()
	_, effect := submission.Next(submission.InFlight, submission.OwnerDied{}, c.config().OnAmbiguous)
	for n := decidedAtOnce; n == decidedAtOnce; {
		var settled []messages.Settled
		err := postgres.InTx(ctx, d.hot, func(tx pgx.Tx) error {
			settled = nil // after a retry
			if err := matcher.Lock(ctx, tx); err != nil {
				return err
			}
			begun, err := d.carrying.TakeBegun(ctx, tx, c.name, dead, decidedAtOnce)
			if n = len(begun); err != nil || n == 0 {
				return err
			}
			var segments []receipts.Segment
			var finals []messages.Final
			for _, m := range begun {
				unanswered := c.config().unanswered(m)
				segments = append(segments, unanswered...)
				if effect.Fail != "" && len(unanswered) > 0 {
					finals = append(finals, messages.Final{MessageID: m.ID, Status: sms.Failed, At: postgres.Now(), Reason: effect.Fail})
				}
			}
			recorded, err := matcher.Record(ctx, tx, segments, nil, 0)
			if err != nil {
				return err
			}
			early, err := d.carrying.Verdicts(ctx, tx, recorded.Settled)
			if err != nil {
				return err
			}
			settled, err = d.conclude(ctx, tx, d.carrying, append(early, finals...), messages.Ends{})
			return err
		})
		if err != nil {
			return fmt.Errorf("settling what dead dispatchers had begun for %s: %w", c.name, err)
		}
		if n > 0 {
			d.log.Warn("a dispatcher died while submitting; the carrier may have these messages, they are not sent again", "event", "claims_unanswered", "carrier", c.name, "messages", n)
		}
		d.report(settled)
	}
	return nil
}

// unanswered returns, to be recorded, the segments of a message that the carrier
// may or may not have.
func (c *Carrier) unanswered(m *messages.Claimed) (segments []receipts.Segment) {
	total := len(c.segments(m, postgres.Now()))
	for n := 1; n <= total; n++ {
		if !slices.Contains(m.Accepted, n) && !slices.Contains(m.Unanswered, n) {
			segments = append(segments, receipts.Segment{MessageID: m.ID, Segment: n, Total: total, Number: m.Number, At: postgres.Now(),
				Unanswered: true, Reference: reference(m.ID, n)})
		}
	}
	return segments
}
