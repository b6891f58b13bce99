package operations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"intumwa/dispatcher"
	"intumwa/dispatcher/recovery"
	"intumwa/dispatcher/setup"
	"intumwa/messages/rerouting"
)

// Retirement is a decision that a carrier closes.
type Retirement struct {
	Carrier string
	To      string                         // the carrier that takes over; "": none, its messages fail and are refunded
	Refund  setup.Refund                   // billing.refund
	Taker   func(name string) rerouting.To // a carrier of the configuration
	Wait    time.Duration                  // how long the act takes messages away; dispatchers take the others
}

// Retired is what became of a retired carrier's messages.
type Retired struct {
	HandedOver      int64 `json:"handed_over"`
	Failed          int64 `json:"failed"`
	CreditsReturned int64 `json:"credits_returned"`
	Left            int64 `json:"left"` // they still wait, or a dispatcher has them in hand: dispatchers take them away
}

// retireAgain is the pause before what is in a dispatcher's hand is looked for again.
const retireAgain = 100 * time.Millisecond

// RetireCarrier retires a carrier, or names another successor of a retired one, and takes away what waits for it. An
// entry at the beginning has the decision, and one at the end the result, if anything was taken away. From the first
// on, each process routes the carrier's numbers to the successor, or refuses them; what a carrier may have is not sent
// again. The error is rerouting.ErrRetired if the successor is retired itself. The act may be repeated.
func (a Actor) RetireCarrier(ctx context.Context, r Retirement) (is Retired, err error) {
	if r.To == r.Carrier {
		return is, fmt.Errorf("%s cannot take over from itself", r.Carrier)
	}
	subject := "carrier " + r.Carrier
	if err := a.do(ctx, locks, func(in within) (act, error) {
		was, err := rerouting.Retire(ctx, in.Tx, r.Carrier, r.To)
		return act{name: "carrier.retire", subject: subject, before: successorOf(was),
			after: successorOf(&rerouting.Retired{To: r.To})}, err
	}); err != nil {
		return is, err
	}
	store := rerouting.New(a.Many)
	for start := time.Now(); ; {
		left := max(r.Wait-time.Since(start), 0)
		done, failed := recovery.Evacuate(ctx, a.Many, a.Webhooks, r.Refund, r.Carrier, r.Taker, left)
		is.HandedOver, is.Failed, is.CreditsReturned = is.HandedOver+done.Handed, is.Failed+done.Failed, is.CreditsReturned+
			done.Credits
		var uncounted error
		is.Left, uncounted = store.Leavable(ctx, r.Carrier)
		if err = errors.Join(failed, uncounted); err != nil || is.Left == 0 || time.Since(start) >= r.Wait {
			break
		}
		select {
		case <-ctx.Done():
			return is, ctx.Err()
		case <-time.After(retireAgain):
		}
	}
	if is.HandedOver+is.Failed > 0 {
		err = errors.Join(err, a.noteEnd(ctx, act{name: "carrier.retire.done", subject: subject, after: is}))
	}
	return is, err
}

// ReopenCarrier ends the retirement of a carrier, and reports whether it was retired. Its numbers go to it again;
// messages that have left it do not come back.
func (a Actor) ReopenCarrier(ctx context.Context, carrier string) (was bool, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		of, err := rerouting.Reopen(ctx, in.Tx, carrier)
		if was = of != nil; !was {
			return act{}, err
		}
		return act{name: "carrier.reopen", subject: "carrier " + carrier, before: successorOf(of), after: successorOf(nil)},
			err
	})
	return was, err
}

// successorOf is a carrier's state in the audit log.
func successorOf(r *rerouting.Retired) fields {
	switch {
	case r == nil:
		return fields{"to": nil}
	case r.To == "":
		return fields{"to": dispatcher.Refuse}
	}
	return fields{"to": r.To}
}
