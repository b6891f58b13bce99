package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/outbox"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
)

// freeClaims frees the claims of dead dispatchers if there may be any: after this process
// started, after a dispatcher died, and when the walk over the outbox found such a claim.
func (d *Recovery) freeClaims(ctx context.Context) error {
	if !d.Deaths.Unfreed.Swap(false) {
		return nil
	}
	err := d.Free(ctx)
	if err != nil {
		d.Deaths.Unfreed.Store(true)
	}
	return err
}

// Free frees the claims of dead dispatchers, a part of the outbox at a time. It lists the
// claims before the living, so a dispatcher that registers in between is not taken for dead,
// however long this process slept there.
//
// What a dead dispatcher may have submitted is freed only by a process that has the carrier in
// its configuration, or by any if no process has it.
func (d *Recovery) Free(ctx context.Context) error {
	var failed error // one carrier's failure does not stop the others
	freed := int64(0)
	for after, more := int64(0), true; more; more = after > 0 {
		claims, next, err := d.claimsAfter(ctx, after)
		if err != nil {
			return errors.Join(failed, err)
		}
		living, err := d.living(ctx)
		if err != nil {
			return errors.Join(failed, err)
		}
		n, err := d.freeDead(ctx, slices.DeleteFunc(
			claims, func(c outbox.ClaimedRow) bool { return slices.Contains(living, c.Dispatcher) }))
		freed, failed, after = freed+n, errors.Join(failed, err), next
	}
	if freed > 0 {
		d.Log.Warn("claims of a dead dispatcher freed", "event", "claims_freed", "messages", freed)
	}
	return failed
}

// freeDead frees claims of dead dispatchers and returns how many messages wait again because
// their claims had not begun.
func (d *Recovery) freeDead(ctx context.Context, dead []outbox.ClaimedRow) (freed int64, failed error) {
	type part struct {
		carrier    string // "": not begun
		dispatcher int64
	}
	parts := map[part][]messages.Claim{}
	for _, c := range dead {
		of := part{c.Carrier, c.Dispatcher}
		if !c.Begun {
			of.carrier = ""
		}
		parts[of] = append(parts[of], c.Claim)
	}
	for of, claims := range parts {
		for some := range slices.Chunk(claims, core.DecidedAtOnce) {
			var n int64
			var err error
			if of.carrier == "" {
				n, err = d.Store.Outbox.Free(ctx, d.Pool, of.dispatcher, some)
			} else {
				err = d.freeBegun(ctx, of.carrier, of.dispatcher, some)
			}
			freed, failed = freed+n, errors.Join(failed, err)
		}
	}
	return freed, failed
}

func (d *Recovery) living(ctx context.Context) ([]int64, error) {
	return postgres.All(ctx, d.Pool, "listing the dispatchers", pgx.RowTo[int64], `SELECT id FROM dispatchers`)
}

// freeBegun frees claims of a dead dispatcher that had begun, if this process decides about the carrier's messages.
func (d *Recovery) freeBegun(ctx context.Context, carrier string, dispatcher int64, claims []messages.Claim) error {
	for _, c := range d.Running() {
		if c.Name == carrier {
			return d.settleBegun(ctx, c.Config(), dispatcher, claims)
		}
	}
	served, err := d.Served(ctx)
	if err != nil || slices.Contains(served, carrier) {
		return err
	}
	return d.settleBegun(ctx, &setup.Carrier{Name: carrier, OnAmbiguous: setup.AmbiguousAwaitReceipt}, dispatcher, claims)
}

// settleBegun stores what a dead dispatcher may have submitted to a carrier as unanswered submit records,
// and then decides of the messages as after an attempt without answers.
func (d *Recovery) settleBegun(ctx context.Context, c *setup.Carrier, dispatcher int64, claims []messages.Claim) error {
	var settled []messages.Settled
	var n int
	err := postgres.InTx(ctx, d.Hot, func(tx pgx.Tx) error {
		settled, n = nil, 0 // after a retry
		matcher := receipts.New(c.Name, c.IDFormat)
		if err := matcher.Lock(ctx, tx); err != nil {
			return err
		}
		ids := make([]int64, len(claims))
		for i, claim := range claims {
			ids[i] = claim.MessageID
		}
		begun, err := d.Carrying.Outbox.Begun(ctx, tx, c.Name, dispatcher, ids)
		if n = len(begun); err != nil || n == 0 {
			return err
		}
		// A later attempt may also have sent a segment again that was unanswered and has been accepted since.
		written := func(m *outbox.Claimed, s submission.State) bool { return m.Attempt > 1 || s == submission.Waiting }
		early, records, err := recordUnanswered(ctx, tx, c, begun, written)
		if err != nil {
			return err
		}
		finals, rows := settling.AfterDeath(begun, records, c.OnAmbiguous, dispatcher)
		settled, err = d.Conclude(ctx, tx, d.Carrying.Messages, append(early, finals...), rows)
		return err
	})
	if err != nil {
		return fmt.Errorf("settling what a dead dispatcher had begun for %s: %w", c.Name, err)
	}
	if n > 0 {
		d.Log.Warn("a dispatcher died while submitting; the carrier may have these messages", "event", "claims_unanswered",
			"carrier", c.Name, "messages", n)
	}
	d.Report(settled)
	return nil
}

// recordUnanswered stores, as unanswered submit records, the segments of messages that may have been written. It
// returns all their submit records, and the verdicts by receipts that were in the inbox. The caller holds the carrier's
// lock.
func recordUnanswered(ctx context.Context, tx pgx.Tx, c *setup.Carrier, list []*outbox.Claimed,
	written func(*outbox.Claimed, submission.State) bool) (early []messages.Final, records map[int64][]submission.Record,
	err error) {
	var segments []receipts.Segment
	ids := make([]int64, len(list))
	for i, m := range list {
		ids[i] = m.ID
		now := postgres.Now()
		submits, err := c.Segments(m, nil, now)
		total := len(submits)
		if err != nil { // it cannot be sent as it is configured now
			total = m.Segments
		}
		for n := 1; n <= total; n++ {
			if written(m, submission.StateOf(n, total, m.Records)) {
				segments = append(segments, receipts.Segment{MessageID: m.ID, Segment: n, Total: total, Number: m.Number, At: now,
					Unanswered: true, Reference: profile.Reference(m.ID, n)})
			}
		}
	}
	recorded, err := receipts.New(c.Name, c.IDFormat).Record(ctx, tx, segments, nil, 0)
	if err != nil {
		return nil, nil, err
	}
	if records, err = receipts.Records(ctx, tx, c.Name, ids); err != nil {
		return nil, nil, err
	}
	for _, st := range recorded.Settled {
		if final := core.Verdict(st.MessageID, st.Total, records[st.MessageID]); final != nil {
			early = append(early, *final)
		}
	}
	return early, records, nil
}
