package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/billing"
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
	view := VerificationView{ID: v.ULID, Status: v.State.String(), To: v.Number, Sender: v.Sender, Locale: v.Locale,
		Reference: v.Reference,
		Amount:    v.Amount, Payee: v.Payee, CreatedAt: webhooks.Time{Time: v.CreatedAt},
		ExpiresAt: webhooks.Time{Time: v.ExpiresAt}}
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
// [verifications.LimitError] and [verifications.ErrLong]. A request without a key that repeats one of a moment ago
// sends nothing, and is told the same.
func (in *Intake) Verify(ctx context.Context, p *accounts.Principal, r verifications.Request, key *Key) (
	Answer, error) {
	var made *request // counted for its company
	var v verifications.Verification
	r.Keyed = key != nil
	kind, check := in.maySend(r.Number, r.Sender)
	answer, err := in.accept(ctx, p, key, check, func(p *accounts.Principal) (_ *request, err error) {
		made, err = in.verification(ctx, p, kind, r, &v)
		return made, err
	})
	if made != nil && !errors.Is(err, ErrOutcomeUnknown) && (err != nil || answer.Replayed) {
		// another process may have answered the key meanwhile
		in.opts.VerificationRate.GiveBack(ctx, made.company)
	}
	if errors.Is(err, verifications.ErrRepeated) {
		return in.repeated(ctx, made, &v)
	}
	return answer, err
}

// verification makes the request of a message with a code, which sets v when it is committed.
func (in *Intake) verification(ctx context.Context, p *accounts.Principal, kind kind, r verifications.Request,
	v *verifications.Verification) (*request, error) {
	company := p.Company
	made, err := in.single(ctx, p, Single{Number: r.Number, Sender: r.Sender, Message: codePlace, Reference: r.Reference},
		kind)
	if err != nil {
		return nil, err
	}
	if d := in.opts.VerificationRate.Allow(ctx, company.ID); !d.Allowed {
		return nil, &verifications.LimitError{Limit: "company", After: max(time.Second, time.Until(d.ResetAt))}
	}
	made.code = true
	m := made.messages[0]
	r.Company, r.User, r.Message, r.Carrier, r.Test, r.ID = sms.CompanyID(company.ID), p.UserID, m.ULID, m.Carrier,
		kind != kindSingle, in.ulids.next()
	r.MayUse = func(sender string) bool {
		return maySendAs(company, sender) == nil && in.WorksAt(company, sender, m.Carrier)
	}
	made.first = func(ctx context.Context, tx pgx.Tx) (verdict, err error) {
		r.Arrived = postgres.Now().Add(-time.Since(made.came))
		*v, err = in.opts.Verifications.Start(ctx, tx, r)
		if err == nil {
			m.Body, err = in.opts.Verifications.Text(ctx, tx, v)
		}
		if _, limited := errors.AsType[*verifications.LimitError](err); limited || errors.Is(err, verifications.ErrLong) ||
			errors.Is(err, verifications.ErrRepeated) {
			return err, nil
		}
		// the carrier's validity and a second carrier end with it
		m.Sender, m.Secret, m.ExpireAt = v.Sender, v.Secret, v.ExpiresAt
		m.Encoding, m.Segments = sms.Count(m.Body)
		return nil, err
	}
	made.response = func(remaining int64) any {
		if kind == kindSandbox {
			remaining = made.left
		}
		return Verified{ViewOf(v), v.Message, 1, remaining}
	}
	return made, nil
}

// repeated answers a request that repeats the one that last sent a code of v. That one is visible, and may be on one
// server.
func (in *Intake) repeated(ctx context.Context, made *request, v *verifications.Verification) (Answer, error) {
	fail := func(err error) (Answer, error) { return Answer{}, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err) }
	err := postgres.Confirmed(ctx, in.pool, func(tx pgx.Tx) (err error) {
		*v, err = in.opts.Verifications.In(tx).ByULID(ctx, v.Company, v.ULID)
		return err
	})
	if err != nil {
		return fail(err)
	}
	var remaining int64
	switch made.kind {
	case kindSingle:
		remaining, err = billing.New(in.pool).Remaining(ctx, made.company, v.Message)
	case kindTest:
		var used int
		used, err = billing.New(in.pool).TestUsed(ctx, v.Company)
		remaining = int64(max(0, in.opts.TestQuota-used))
	}
	if err != nil {
		return fail(err)
	}
	return Answer{Body: Encode(made.response(remaining)), Replayed: true}, nil
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
