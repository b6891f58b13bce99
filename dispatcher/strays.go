package dispatcher

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// hands knows which messages this process has in hand: claimed, and not yet
// settled or given back.
//
// The database may know of more: a claim that was committed while its answer
// was lost. Nobody would carry such a message as long as this process lives,
// so strays finds and frees them.
type hands struct {
	mu       sync.Mutex
	ids      map[int64]struct{}
	suspects map[int64]struct{} // claimed and not in hand when strays last looked
}

func newHands() *hands {
	return &hands{ids: make(map[int64]struct{}), suspects: make(map[int64]struct{})}
}

func (h *hands) take(id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids[id] = struct{}{}
}

func (h *hands) leave(id int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.ids, id)
}

// notHeld are those of the claims that were not in hand now and the time
// before: a claim whose answer is just coming in is not among them.
func (h *hands) notHeld(claims []int64) []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	suspects := make(map[int64]struct{})
	var strays []int64
	for _, id := range claims {
		if _, held := h.ids[id]; held {
			continue
		}
		if _, again := h.suspects[id]; again {
			strays = append(strays, id)
		}
		suspects[id] = struct{}{}
	}
	h.suspects = suspects
	return strays
}

// strayInterval lies between two looks for stray claims.
const strayInterval = 5 * time.Second

func (d *Dispatcher) runStrays(ctx context.Context) {
	for sleep(ctx, strayInterval) == nil {
		if err := d.strays(ctx); err != nil && ctx.Err() == nil {
			d.log.Debug("stray claims", "error", err)
		}
	}
}

// strays gives back what the database counts as claimed by this process and
// this process does not have.
func (d *Dispatcher) strays(ctx context.Context) error {
	me := d.member.id.Load()
	rows, err := d.pool.Query(ctx, `SELECT message_id FROM outbox WHERE claimed_by = $1`, me)
	if err != nil {
		return fmt.Errorf("looking for stray claims: %w", err)
	}
	claims, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("looking for stray claims: %w", err)
	}
	strays := d.hands.notHeld(claims)
	if len(strays) == 0 {
		return nil
	}
	d.log.Warn("claims whose answer was lost are given back", "messages", len(strays))
	return d.store.Release(ctx, me, strays, 0)
}
