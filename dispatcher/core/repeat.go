package core

import (
	"context"
	"log/slog"
	"time"
)

// Repeat calls do at an interval, and at once when woken, until ctx ends. It logs errors.
func Repeat(ctx context.Context, log *slog.Logger, what string, every time.Duration, wake <-chan struct{},
	do func(context.Context) error) {
	for ctx.Err() == nil {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			log.Error("periodic work of the dispatcher fails; retrying", "event", "dispatcher_work_failed", "task", what,
				"error", err)
		}
		timer := time.NewTimer(every)
		select {
		case <-timer.C:
		case <-wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Sleep waits for d. It returns ctx's error if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Signal wakes the waiting goroutine, or the next one to wait.
func Signal(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// MostRest bounds every pause that is a multiple of a statement's duration: one that
// waited for a frozen server must not put off the next for hours.
const MostRest = 5 * time.Minute

// Rest returns a pause of times the duration took, at most MostRest.
func Rest(times int, took time.Duration) time.Duration {
	return min(time.Duration(times)*took, MostRest)
}
