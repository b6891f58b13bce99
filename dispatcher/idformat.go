package dispatcher

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
)

// votesToLearn is how many receipts must agree before a link's format of ids is
// taken for known.
const votesToLearn = 3

// formatNames are the formats as the configuration and the links table spell them.
var formatNames = map[IDFormat]string{IDAuto: "", IDSame: "same", IDHexToDecimal: "hex_to_decimal", IDDecimalToHex: "decimal_to_hex"}

// formatLearner knows how one link's receipts write message ids. Where the
// configuration says auto, it is learnt, and a receipt settles a segment only when the
// handset's number agrees too: the same digits can be one message's id in
// hexadecimal and another's in decimal, and two SMSCs of one carrier may count
// alike. A configured format needs no such check: there are carriers that hide
// the handset.
type formatLearner struct {
	mu     sync.Mutex
	fixed  bool
	format IDFormat // IDAuto: not known yet
	votes  map[IDFormat]int
}

func newFormatLearner(configured IDFormat, learnt string) *formatLearner {
	f := &formatLearner{fixed: configured != IDAuto, format: configured, votes: make(map[IDFormat]int)}
	for format, name := range formatNames {
		if !f.fixed && name == learnt {
			f.format = format
		}
	}
	return f
}

// configure takes over what the configuration says, when that has changed.
func (f *formatLearner) configure(configured IDFormat) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch fixed := configured != IDAuto; {
	case fixed:
		f.fixed, f.format = true, configured
	case f.fixed:
		f.fixed, f.format = false, IDAuto
		clear(f.votes)
	}
}

// name is how the configuration spells the format; "" while it is not known.
func (f *formatLearner) name() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return formatNames[f.format]
}

// unsure reports whether it has to be found out.
func (f *formatLearner) unsure() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.fixed
}

// otherFormats are the formats in which a receipt may have the id of otherKeys;
// the first is the id itself.
var otherFormats = [...]IDFormat{IDSame, IDHexToDecimal, IDDecimalToHex}

// otherKeys are the keys of a submit_sm_resp's id as a receipt would have it in
// the other formats; "" where it cannot be in one.
func otherKeys(id string) []string {
	key := messages.Key(id)
	decimal, _ := rebase(key, 16, 10)
	hex, _ := rebase(key, 10, 16)
	if decimal == key || len(key) == 0 { // one digit is itself in every format
		return nil
	}
	return []string{decimal, hex}
}

// key is the key of the segment that a receipt names; verify says that the
// handset's number must agree, guess that the format is not known.
func (f *formatLearner) key(id string) (key string, verify, guess bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return receiptKey(f.format, id), !f.fixed, f.format == IDAuto
}

// confirm notes that a receipt found its segment under the format that is known.
func (f *formatLearner) confirm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.votes)
}

// vote notes that a receipt found its segment under a format, the handset's
// number agreeing. It returns the format's name when that made it known.
func (f *formatLearner) vote(format IDFormat) (learnt string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fixed || f.format == format {
		clear(f.votes) // what is known is confirmed
		return ""
	}
	f.votes[format]++
	if f.votes[format] < votesToLearn {
		return ""
	}
	f.format = format
	clear(f.votes)
	return formatNames[format]
}

// A receipt is looked for under other formats once it has waited for inboxAge:
// by then its own response is in, if it was only late.
const (
	inboxAge    = 2 * time.Second
	inboxLimit  = 1000
	inboxRounds = 5 // the task looks at so many times inboxLimit
)

// rematch looks for receipts of a carrier that were found under no format of
// their id that was tried, and tries the others.
func (d *Dispatcher) rematch(ctx context.Context, c *carrier) error {
	if c.config().IDFormat != IDAuto {
		return nil
	}
	if c.inboxSeen == 0 {
		end, err := d.store.InboxEnd(ctx, messages.InboxReach)
		if err != nil {
			return err
		}
		c.inboxSeen = end
	}
	end, err := d.store.InboxEnd(ctx, inboxAge+settleTimeout) // what is older is committed, whoever's it is
	if err != nil {
		return err
	}
	for range inboxRounds {
		switch n, err := d.rematchSome(ctx, c); {
		case err != nil:
			return err
		case n < inboxLimit:
			c.inboxSeen = max(c.inboxSeen, end) // others' receipts are not looked at again either
			return nil
		}
	}
	return nil
}

// rematchSome does so for the next of them and returns how many it looked at.
func (d *Dispatcher) rematchSome(ctx context.Context, c *carrier) (n int, err error) {
	var settled []messages.Settled
	type ballot struct {
		link   string
		format IDFormat
	}
	var ballots []ballot
	after := c.inboxSeen
	err = postgres.InTx(ctx, d.hot, func(tx pgx.Tx) error {
		n, settled, ballots, after = 0, nil, nil, c.inboxSeen
		inbox, err := d.carrying.Inbox(ctx, tx, c.name, after, inboxAge, inboxLimit)
		if err != nil || len(inbox) == 0 {
			return err
		}
		n, after = len(inbox), inbox[len(inbox)-1].ID
		if err := d.carrying.LockCarrier(ctx, tx, c.name); err != nil {
			return err
		}
		var all []messages.SegmentState
		done := make(map[int64]bool) // a receipt settles one segment
		for _, format := range []IDFormat{IDSame, IDHexToDecimal, IDDecimalToHex} {
			var tries []messages.InboxReceipt
			for _, r := range inbox {
				if key := receiptKey(format, r.CarrierID); r.Number != "" && key != r.Key && !done[r.ID] {
					r.Key = key
					tries = append(tries, r)
				}
			}
			states, matched, err := d.carrying.Settle(ctx, tx, tries)
			if err != nil {
				return err
			}
			all = append(all, states...)
			for i, ok := range matched {
				if ok {
					done[tries[i].ID] = true
					ballots = append(ballots, ballot{tries[i].Link, format})
				}
			}
		}
		finals, err := d.carrying.Verdicts(ctx, tx, all)
		if err != nil {
			return err
		}
		settled, err = d.conclude(ctx, tx, d.carrying, finals, messages.Ends{})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("looking for the segments of %s's receipts: %w", c.name, err)
	}
	c.inboxSeen = after
	d.report(settled)
	c.unmatched.give(len(ballots))
	for _, b := range ballots {
		d.metrics.receipts.WithLabelValues(c.name, b.link, string(messages.Matched)).Inc()
		d.learn(ctx, c, b.link, b.format)
	}
	return n, nil
}

// learn counts a vote and, when it decides, writes down what was learnt.
func (d *Dispatcher) learn(ctx context.Context, c *carrier, link string, format IDFormat) {
	learner := c.format(link)
	if learner == nil {
		return
	}
	learnt := learner.vote(format)
	if learnt == "" {
		return
	}
	d.log.Info("learnt how a link writes message ids in receipts", "carrier", c.name, "link", link, "message_id_format", learnt)
	d.metrics.showFormat(c.name, link, learnt)
	if _, err := d.pool.Exec(ctx, `UPDATE links SET id_format = $2 WHERE name = $1`, link, learnt); err != nil {
		d.log.Warn("writing down what was learnt; it is learnt again after a restart", "link", link, "error", err)
	}
}
