package dispatcher

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
)

// rematch looks for the segments of receipts of a carrier that wait in the inbox,
// whose ids may be in another format than those that were tried.
func (d *Dispatcher) rematch(ctx context.Context, c *carrier) error {
	if c.config().IDFormat != IDAuto {
		return nil
	}
	walk, err := c.matcher.Rematch(ctx, d.pool, settleTimeout)
	if err != nil {
		return err
	}
	for more := true; more; {
		var settled []messages.Settled
		var sent secondTook
		err := postgres.InTx(ctx, d.hot, func(tx pgx.Tx) error {
			settled, sent = nil, nil // of a try before
			states, err := walk.Some(ctx, tx)
			if err != nil || len(states) == 0 {
				return err
			}
			finals, err := d.carrying.Verdicts(ctx, tx, states)
			if err != nil {
				return err
			}
			if sent, err = d.offerToSecond(ctx, tx, c, &attempts{}, finals); err != nil {
				return err
			}
			settled, err = d.conclude(ctx, tx, d.carrying, sent.fail(finals), messages.Ends{})
			return err
		})
		if err != nil {
			return fmt.Errorf("looking for the segments of %s's receipts: %w", c.name, err)
		}
		var links []string
		var learnt []receipts.Learnt
		links, learnt, more = walk.Committed()
		d.countSecond(c, sent)
		d.report(settled)
		c.unmatched.give(len(links))
		for _, link := range links {
			d.metrics.receipts.WithLabelValues(c.name, link, string(receipts.Matched)).Inc()
		}
		d.learnt(ctx, c, learnt)
	}
	return nil
}

// learnt writes down how links write message ids, where that has become known.
func (d *Dispatcher) learnt(ctx context.Context, c *carrier, learnt []receipts.Learnt) {
	for _, l := range learnt {
		d.log.Info("learnt how a link writes message ids in receipts", "carrier", c.name, "link", l.Link, "message_id_format", l.Word)
		d.metrics.showFormat(c.name, l.Link, l.Word)
		if _, err := d.pool.Exec(ctx, `UPDATE links SET id_format = $2 WHERE name = $1`, l.Link, l.Word); err != nil {
			d.log.Warn("writing down what was learnt; it is learnt again after a restart", "link", l.Link, "error", err)
		}
	}
}
