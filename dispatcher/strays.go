package dispatcher

import (
	"context"
	"sync"
	"time"

	"intumwa/messages"
)

// hands knows which messages this process has in hand: claimed, and not yet
// settled or given back.
//
// The database may know of more: a claim that was committed while its answer
// was lost. Nobody would carry such a message as long as this process lives,
// so strays finds and frees them.
type hands struct {
	mu       sync.Mutex
	journeys map[int64]*journey          // by message
	suspects map[messages.Claim]struct{} // claimed and not in hand when strays last looked
}

func newHands() *hands {
	return &hands{journeys: make(map[int64]*journey), suspects: make(map[messages.Claim]struct{})}
}

func (h *hands) take(j *journey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.journeys[j.msg.ID] = j
}

// leave lets go of j. Another lane of this process may have claimed the message
// anew by then: that one stays.
func (h *hands) leave(j *journey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.journeys[j.msg.ID] == j {
		delete(h.journeys, j.msg.ID)
	}
}

// of is the journey of a message in hand; nil when it is not.
func (h *hands) of(id int64) *journey {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.journeys[id]
}

// notHeld are those of the claims that were not in hand now and the time
// before: a claim whose answer is just coming in is not among them.
func (h *hands) notHeld(claims []messages.Claim) []messages.Claim {
	h.mu.Lock()
	defer h.mu.Unlock()
	suspects := make(map[messages.Claim]struct{})
	var strays []messages.Claim
	for _, claim := range claims {
		if j := h.journeys[claim.MessageID]; j != nil && j.msg.Turn == claim.Turn {
			continue
		}
		if _, again := h.suspects[claim]; again {
			strays = append(strays, claim)
		}
		suspects[claim] = struct{}{}
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
	claims, err := d.store.ClaimsOf(ctx, me)
	if err != nil {
		return err
	}
	strays := d.hands.notHeld(claims)
	if len(strays) == 0 {
		return nil
	}
	d.log.Warn("claims whose answer was lost are given back", "messages", len(strays))
	return d.store.Release(ctx, me, strays, 0)
}
