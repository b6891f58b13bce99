package recovery

import (
	"context"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/messages"
	"intumwa/messages/outbox"
)

// orphanLooks are the pauses before the searches for orphaned claims after a claim has
// failed. The server may commit that claim after its timeout here, but not a minute
// later. A search reads the whole backlog, so there are few.
var orphanLooks = [...]time.Duration{5 * time.Second, 10 * time.Second, 45 * time.Second}

// lookTimeout bounds one step of a search.
const lookTimeout = 15 * time.Second

// RunOrphans searches for orphaned claims after a claim has failed.
func (d *Recovery) RunOrphans(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.InFlight.Failed:
		}
		for _, pause := range orphanLooks {
			if core.Sleep(ctx, pause) != nil {
				return
			}
			if err := d.ReleaseOrphans(ctx); err != nil {
				d.Log.Debug("looking for orphaned claims; it is tried again", "error", err)
				core.Signal(d.InFlight.Failed)
			}
		}
	}
}

// ReleaseOrphans gives back the claims of this process that exist only in the database. A
// message that was claimed, settled or given back meanwhile has another epoch or is gone,
// so the release does not touch it.
func (d *Recovery) ReleaseOrphans(ctx context.Context) error {
	me := d.Leases.ID.Load()
	for after, more := int64(0), true; more; more = after > 0 {
		claims, next, err := d.claimsAfter(ctx, after)
		if err != nil {
			return err
		}
		var mine []messages.Claim
		for _, c := range claims {
			if c.Dispatcher == me {
				mine = append(mine, c.Claim)
			}
		}
		if orphans := d.InFlight.Orphaned(mine); len(orphans) > 0 {
			d.Log.Warn("orphaned claims released: their commit was never confirmed", "event", "orphaned_claims_released",
				"messages", len(orphans))
			if err := d.Store.Outbox.Release(ctx, me, orphans, 0); err != nil {
				return err
			}
		}
		after = next
	}
	return nil
}

// claimsAfter is outbox.Store.Claims within lookTimeout.
func (d *Recovery) claimsAfter(ctx context.Context, after int64) (claims []outbox.ClaimedRow, next int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return d.Store.Outbox.Claims(ctx, after)
}
