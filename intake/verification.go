package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/sms"
	"intumwa/verifications"
	"intumwa/webhooks"
)

// Verified is the response to a request for a verification, with the message that was accepted.
type Verified struct {
	VerificationView

	MessageID      ulid.ULID `json:"sms_id"`
	ItemCount      int       `json:"item_count"`
	RemainingItems int64     `json:"remaining_items"`
}

// VerificationView is a verification as its company sees it. It has no code.
type VerificationView struct {
	ID         ulid.ULID     `json:"id"`
	Status     string        `json:"status"` // verifications.State
	To         sms.Number    `json:"phone_number"`
	Sender     string        `json:"sender"`
	Locale     string        `json:"locale"`
	Reference  string        `json:"client_reference,omitempty"`
	Amount     string        `json:"amount,omitempty"`
	Payee      string        `json:"payee,omitempty"`
	SendsLeft  int           `json:"sends_left"`
	ChecksLeft int           `json:"checks_left"`
	CreatedAt  webhooks.Time `json:"created_at"`
	ExpiresAt  webhooks.Time `json:"expires_at"`

	FinishedAt *webhooks.Time `json:"finished_at"` // null: pending, or expired a moment ago
}

// ViewOf returns a verification as its company sees it.
func ViewOf(v *verifications.Verification) VerificationView {
	view := VerificationView{ID: v.ULID, Status: v.State.String(), To: v.Number, Sender: v.Sender, Locale: v.Locale, Reference: v.Reference,
		Amount: v.Amount, Payee: v.Payee, CreatedAt: webhooks.Time{Time: v.CreatedAt}, ExpiresAt: webhooks.Time{Time: v.ExpiresAt}}
	if v.FinishedAt != nil {
		view.FinishedAt = &webhooks.Time{Time: *v.FinishedAt}
	}
	if v.State == verifications.Pending {
		view.SendsLeft, view.ChecksLeft = verifications.MostSends-v.Sends, verifications.MostChecks-v.Wrong
	}
	return view
}

// Verify sends a code to a number: of a new verification, or of the pending one that the request joins
// ([verifications.Store.Start]). The rules and the price are those of a single send. It returns what Send returns, and
// [verifications.LimitError] and [verifications.ErrLong].
func (in *Intake) Verify(ctx context.Context, p *accounts.Principal, r verifications.Request, key *Key) (Answer, error) {
	var counted *verifications.Counted // its message is not accepted yet
	kind, check := in.maySend(r.Number, r.Sender)
	answer, err := in.accept(ctx, p, key, check, func(p *accounts.Principal) (made *request, err error) {
		made, counted, err = in.verification(ctx, p, kind, r)
		return made, err
	})
	if counted != nil && !errors.Is(err, ErrOutcomeUnknown) && (err != nil || answer.Replayed) { // another process may have answered the key meanwhile
		in.release(ctx, counted)
	}
	return answer, err
}

// verification makes the request of a message with a code, and counts it in its verification.
func (in *Intake) verification(ctx context.Context, p *accounts.Principal, kind kind, r verifications.Request) (made *request, counted *verifications.Counted, err error) {
	company := p.Company.ID
	if made, err = in.single(ctx, p, Single{Number: r.Number, Sender: r.Sender, Message: codePlace, Reference: r.Reference}, kind); err != nil {
		return nil, nil, err
	}
	if d := in.opts.VerificationRate.Allow(ctx, company); !d.Allowed {
		return nil, nil, &verifications.LimitError{Limit: "company", After: max(time.Second, time.Until(d.ResetAt))}
	}
	m := made.messages[0]
	r.Company, r.User, r.Message, r.Carrier, r.Test, r.ID = sms.CompanyID(company), p.UserID, m.ULID, m.Carrier, kind != kindSingle, in.ulids.next()
	var v verifications.Counted
	if err := in.inTurn(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if v, err = in.opts.Verifications.Start(ctx, tx, r); err != nil {
			return err
		}
		m.Body, err = in.opts.Verifications.Text(ctx, tx, &v.Verification)
		return err
	}); err != nil {
		in.opts.VerificationRate.GiveBack(ctx, company)
		if _, limited := errors.AsType[*verifications.LimitError](err); limited || errors.Is(err, verifications.ErrLong) {
			return nil, nil, err
		}
		return nil, nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	m.Secret, m.ExpireAt = v.Secret, v.ExpiresAt // the carrier's validity and a second carrier end with it
	m.Encoding, m.Segments = sms.Count(m.Body)
	made.response = func(remaining int64) any {
		if kind == kindSandbox {
			remaining = made.left
		}
		return Verified{ViewOf(&v.Verification), m.ULID, m.Segments, remaining}
	}
	return made, &v, nil
}

// codePlace is a text of one segment, as every text with a code is.
const codePlace = "-"

// verificationTurns is how many transactions of verifications run at once. Those of one number, and of one
// verification, wait for each other; they must not hold all connections.
const verificationTurns = 4

// inTurn calls do in a transaction, which ends or fails within commitTimeout.
func (in *Intake) inTurn(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	select {
	case in.turns <- struct{}{}:
		defer func() { <-in.turns }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for a turn: %w", ctx.Err())
	}
	return postgres.InTx(ctx, in.pool, func(tx pgx.Tx) error { return do(ctx, tx) })
}

// release takes back a message of a verification that was not accepted.
func (in *Intake) release(ctx context.Context, v *verifications.Counted) {
	ctx = context.WithoutCancel(ctx)
	in.opts.VerificationRate.GiveBack(ctx, int64(v.Company))
	if err := in.inTurn(ctx, func(ctx context.Context, tx pgx.Tx) error { return in.opts.Verifications.Release(ctx, tx, v) }); err != nil {
		in.opts.Log.WarnContext(ctx, "a message that was not accepted stays counted in its verification", "event", "verification_not_released", "verification", v.ULID, "error", err)
	}
}
