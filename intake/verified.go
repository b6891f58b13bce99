package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/messages/lookup"
	"intumwa/sms"
	"intumwa/verifications"
	"intumwa/webhooks"
)

// FindApproved returns a company's verification that was seen as approved, as it is after a commit: if the database
// fails over, it stays so.
func (in *Intake) FindApproved(ctx context.Context, company sms.CompanyID, id ulid.ULID) (v verifications.Verification,
	err error) {
	err = in.inTurn(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if v, err = in.opts.Verifications.In(tx).ByULID(ctx, company, id); err != nil {
			return err
		}
		return postgres.ConfirmWith(ctx, tx)
	})
	if err != nil && !errors.Is(err, verifications.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return v, err
}

// CheckCode compares what a person entered with the code ([verifications.Store.Check]). Of calls at once with the right
// code one approves, and the others are told the same (Repeated). ErrOutcomeUnknown: this call may have approved it.
func (in *Intake) CheckCode(ctx context.Context, company sms.CompanyID, id ulid.ULID, e verifications.Entry) (
	verifications.Verification, error) {
	e.Arrived = postgres.Now()
	return in.judge(ctx, func(ctx context.Context, tx pgx.Tx) (v verifications.Verification, ended bool, verdict,
		err error) {
		return in.opts.Verifications.Check(ctx, tx, company, id, e)
	})
}

// CancelVerification ends a pending verification.
func (in *Intake) CancelVerification(ctx context.Context, company sms.CompanyID, id ulid.ULID) (
	verifications.Verification, error) {
	return in.judge(ctx, func(ctx context.Context, tx pgx.Tx) (v verifications.Verification, ended bool, verdict,
		err error) {
		v, verdict, err = in.opts.Verifications.Cancel(ctx, tx, company, id)
		return v, verdict == nil, verdict, err
	})
}

// judge commits a change of a verification, whatever the verdict: a wrong code is counted.
func (in *Intake) judge(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) (v verifications.Verification,
	ended bool, verdict, err error)) (v verifications.Verification, verdict error) {
	var ended, committing bool
	err := in.inTurn(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		committing = false
		v, ended, verdict, err = do(ctx, tx)
		if err == nil && ended {
			one := []verifications.Verification{v}
			if _, err = in.carried(ctx, tx, one); err == nil {
				err = in.conclude(ctx, tx, one)
			}
			v = one[0]
		}
		if err == nil && v.Repeated {
			err = postgres.ConfirmWith(ctx, tx)
		}
		committing = err == nil
		return err
	})
	switch {
	case errors.Is(err, verifications.ErrNotFound):
		return v, err
	case err != nil && committing && !postgres.RolledBack(err):
		return v, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	case err != nil:
		return v, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case ended:
		in.metrics.verified([]verifications.Verification{v})
	}
	return v, verdict
}

// Feedback records a customer's report on a message.
func (in *Intake) Feedback(ctx context.Context, f verifications.Feedback) error {
	err := in.inTurn(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return in.opts.Verifications.Report(ctx, tx, f)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// conclude records the events of verifications that ended, and whether their people answered, by the carriers of their
// last messages.
func (in *Intake) conclude(ctx context.Context, tx pgx.Tx, ended []verifications.Verification) error {
	events := make([]webhooks.Event, len(ended))
	for i := range ended {
		v := &ended[i]
		events[i] = webhooks.Event{CompanyID: int64(v.Company), MessageID: v.Event, Name: webhooks.VerificationFinished,
			PhoneNumber: string(v.Number), At: *v.FinishedAt,
			Data: webhooks.VerificationFinishedData{ID: v.ULID.String(), PhoneNumber: string(v.Number), Status: v.State.String(),
				FinishedAt: webhooks.Time{Time: *v.FinishedAt},
				Sends:      v.Sends, WrongChecks: v.Wrong, Reference: v.Reference}}
	}
	if err := verifications.Answers(ctx, tx, ended); err != nil {
		return err
	}
	return in.opts.Events(ctx, tx, events)
}

// carried sets the carriers of verifications to those that have their last messages, and returns which of these have
// failed.
func (in *Intake) carried(ctx context.Context, tx pgx.Tx, list []verifications.Verification) (
	failed []bool, err error) {
	last := make([]ulid.ULID, len(list))
	for i := range list {
		last[i] = list[i].Message
	}
	ends, err := lookup.EndsOf(ctx, tx, last)
	if err != nil {
		return nil, err
	}
	failed = make([]bool, len(list))
	for i := range list {
		if end, known := ends[list[i].Message]; known {
			list[i].Carrier, failed[i] = end.Carrier, end.Failed
		}
	}
	return failed, nil
}

const (
	endsEvery   = 2 * time.Second
	endsStep    = 200
	unreadEvery = 5 * time.Minute
)

// RunVerifications ends verifications whose time is over, deletes old ones, and looks for codes that nobody enters,
// until ctx ends.
func (in *Intake) RunVerifications(ctx context.Context) error {
	var looked time.Time
	var known []verifications.Unanswered
	for {
		if time.Since(looked) > unreadEvery {
			looked, known = time.Now(), in.lookForUnanswered(ctx, known)
		}
		more, err := in.endVerifications(ctx)
		if err == nil && !more {
			more, err = in.opts.Verifications.Purge(ctx)
		}
		if err != nil && ctx.Err() == nil {
			in.opts.Log.WarnContext(ctx, "verifications whose time is over stay pending; trying again", "event",
				"verifications_failed", "error", err)
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(endsEvery):
		}
	}
}

// lookForUnanswered logs new findings: a metric has their number.
func (in *Intake) lookForUnanswered(ctx context.Context, known []verifications.Unanswered) []verifications.Unanswered {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	found, err := in.opts.Verifications.Unanswered(ctx)
	if err != nil {
		if ctx.Err() == nil {
			in.opts.Log.WarnContext(ctx, "looking for codes that nobody enters failed", "event", "codes_unchecked", "error", err)
		}
		return known
	}
	for _, u := range found {
		if !slices.ContainsFunc(known, func(k verifications.Unanswered) bool {
			return k.Company == u.Company &&
				k.Block == u.Block
		}) {
			in.opts.Log.WarnContext(ctx, "almost nobody in a block of numbers enters a company's codes", "event",
				"codes_unanswered",
				"company_id", int64(u.Company), "block", u.Block, "codes", u.Codes, "entered", u.Entered)
		}
	}
	in.metrics.unread.Set(float64(len(found)))
	return found
}

func (in *Intake) endVerifications(ctx context.Context) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	var due []verifications.Verification
	err = postgres.InTx(ctx, in.pool, func(tx pgx.Tx) (err error) {
		if due, err = in.opts.Verifications.Due(ctx, tx, endsStep); err != nil || len(due) == 0 {
			return err
		}
		failed, err := in.carried(ctx, tx, due)
		if err != nil {
			return err
		}
		if err := in.opts.Verifications.End(ctx, tx, due, failed); err != nil {
			return err
		}
		return in.conclude(ctx, tx, due)
	})
	if err != nil {
		return false, fmt.Errorf("ending verifications: %w", err)
	}
	in.metrics.verified(due)
	return len(due) == endsStep, nil
}
