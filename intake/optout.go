package intake

import (
	"context"

	"github.com/jackc/pgx/v5"

	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// OptedOut is RefuseRecipientsOptedOut of a batch, with all the recipients.
type OptedOut struct {
	sms.Refusal

	Recipients []OptedOutRecipient
}

// OptedOutRecipient is a recipient of a batch who has opted out.
type OptedOutRecipient struct {
	Position int        `json:"recipient"` // from 1
	Number   sms.Number `json:"phone_number"`
}

// Unwrap returns the refusal.
func (o *OptedOut) Unwrap() error { return o.Refusal }

// bar refuses requests with a recipient who has opted out of the company's sender. It reads in the transaction that
// charges, so a committed entry applies to every process, and a refused request is not charged. Requests of companies
// without a list cost nothing, the others one statement a group.
//
// Test messages, one-time codes and sandbox messages pass: their sender is not the company's.
func bar(ctx context.Context, tx pgx.Tx, requests []*request) error {
	var pairs []handsets.Pair
	for _, r := range requests {
		if r.optOuts {
			for _, m := range r.messages {
				pairs = append(pairs, handsets.Pair{CompanyID: m.CompanyID, Number: m.Number, Sender: m.Sender})
			}
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	barred, err := handsets.Barred(ctx, tx, pairs)
	if err != nil || len(barred) == 0 {
		return err
	}
	n := 0
	for _, r := range requests {
		if !r.optOuts {
			continue
		}
		var out []OptedOutRecipient
		var ordinals []string
		for i, m := range r.messages {
			if barred[n+i] {
				out, ordinals = append(out, OptedOutRecipient{i + 1, m.Number}), append(ordinals, ordinal(i))
			}
		}
		n += len(r.messages)
		switch {
		case len(out) == 0:
		case r.kind.alone():
			r.barred = RefuseOptedOut
		default:
			r.barred = &OptedOut{RefuseRecipientsOptedOut(ordinals...), out}
		}
	}
	return nil
}
