package settling

import (
	"context"
	"sync"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/inbound/handsets"
	"intumwa/internal/postgres"
	"intumwa/smpp"
)

const (
	answersMost  = 10_000                // that wait to be stored
	answersPause = 20 * time.Millisecond // in which more are collected
	answersTry   = time.Minute           // for which one is tried
	answersEnd   = time.Second           // of a shutdown
)

// answers are the responses to MOs that are given to their sessions. When one is written, its time is stored: the
// carrier's next delivery of the same text is then a new message (handsets.Store.Repeats). One that could not be
// written is never stored, and the carrier's repetition is recognised.
type answers struct {
	wake chan struct{}

	mu   sync.Mutex
	open []answer

	storing sync.Mutex
}

type answer struct {
	handsets.Answer
	pdu *smpp.Delivery
}

// ok acknowledges a stored MO.
func (a *answers) ok(id int64, pdu *smpp.Delivery) {
	at := postgres.Moment(time.Now())
	pdu.Respond(smpp.StatusOK)
	a.mu.Lock()
	if len(a.open) >= answersMost { // the database is down
		a.open = a.open[1:]
	}
	a.open = append(a.open, answer{handsets.Answer{ID: id, At: at}, pdu})
	a.mu.Unlock()
	core.Signal(a.wake)
}

// Run stores answers until ctx ends.
func (a *answers) Run(ctx context.Context, to *handsets.Store) {
	for {
		select {
		case <-a.wake:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), answersEnd)
			defer cancel()
			_ = a.store(last, to)
			return
		}
		_ = core.Sleep(ctx, answersPause)
		for ctx.Err() == nil {
			if err := a.store(ctx, to); err != nil {
				_ = core.Sleep(ctx, time.Second) // the settler reports an outage
			} else if a.empty() {
				break
			}
			_ = core.Sleep(ctx, answersPause)
		}
	}
}

func (a *answers) empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open) == 0
}

// store stores the answers that are written, and forgets those that never will be.
func (a *answers) store(ctx context.Context, to *handsets.Store) error {
	a.storing.Lock()
	defer a.storing.Unlock()
	a.mu.Lock()
	open := a.open
	a.open = nil
	a.mu.Unlock()
	var waiting []answer
	var left []handsets.Answer
	oldest := postgres.Moment(time.Now().Add(-answersTry))
	for _, one := range open {
		switch written, known := one.pdu.Left(); {
		case one.At.Before(oldest):
		case written:
			left = append(left, one.Answer)
		case !known:
			waiting = append(waiting, one)
		}
	}
	var err error
	if len(left) > 0 {
		byID := map[int64]*smpp.Delivery{}
		for _, one := range open {
			byID[one.ID] = one.pdu
		}
		left, err = to.Answered(ctx, left)
		for _, one := range left {
			waiting = append(waiting, answer{one, byID[one.ID]})
		}
	}
	a.mu.Lock()
	a.open = append(waiting, a.open...)
	a.mu.Unlock()
	return err
}
