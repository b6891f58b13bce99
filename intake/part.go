package intake

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/sms"
)

// Part is a campaign's part and its place in the batch. Each part is paid separately. A part that was added before,
// that is not the next one, or whose batch was cancelled, is an error. Recipients who opt out after the first part was
// accepted are not refused: their messages fail at submission, as in a scheduled batch.
type Part struct {
	Of      ulid.ULID
	Further bool // not the first part
	Awaited int  // recipients of later parts
}

// AtRecipient is the refusal of a batch because of one recipient.
type AtRecipient struct {
	sms.Refusal

	Index int  // from 0
	Limit bool // the recipient reached one (accounts.Limits)
}

// Unwrap returns the refusal.
func (a *AtRecipient) Unwrap() error { return a.Refusal }

func at(index int, refusal sms.Refusal) error { return &AtRecipient{Refusal: refusal, Index: index} }

// Unsendable returns the recipients because of whom SendBatch would refuse a batch as things are now, by index, without
// those that reach a limit. It finds none in a batch that is refused for another reason.
func (in *Intake) Unsendable(p *accounts.Principal, b *Batch) map[int]sms.Refusal {
	if in.maySendBatch(p, b) != nil {
		return nil
	}
	found := map[int]sms.Refusal{}
	for i := range b.Recipients {
		one := *b
		one.Recipients = b.Recipients[i : i+1]
		_, err := in.batch(p, &one)
		if because, isOne := errors.AsType[*AtRecipient](err); isOne {
			found[i] = because.Refusal
		}
	}
	return found
}

// Refusals of a campaign's part because of the person who sends it. They hold while the person's state does.
var (
	RefusePersonLeft = sms.Refusal{Reason: "person_left",
		Text: "The person who sends the campaign has left the company."}
	RefusePersonDisabled = sms.Refusal{Reason: "person_disabled",
		Text: "The account of the person who sends the campaign is disabled."}
	RefusePersonRole = sms.Refusal{Reason: "person_role",
		Text: "The person who sends the campaign may no longer send."}

	PersonRefusals = []sms.Refusal{RefusePersonLeft, RefusePersonDisabled, RefusePersonRole}
)

// RefusePerson returns why a user may not send for a company; false if the user may.
func RefusePerson(u people.User, company int64) (sms.Refusal, bool) {
	switch {
	case u.Company != company:
		return RefusePersonLeft, true
	case u.Disabled:
		return RefusePersonDisabled, true
	case !u.Role.May(accounts.MaySend):
		return RefusePersonRole, true
	}
	return sms.Refusal{}, false
}

// barPeople refuses parts of campaigns whose person may no longer send. The people stay locked until the transaction
// ends: no part is accepted after the commit of a change that ends their right.
func barPeople(ctx context.Context, tx pgx.Tx, requests []*request) error {
	var ids []int64
	for _, r := range requests {
		if r.part {
			ids = append(ids, r.user)
		}
	}
	if ids == nil {
		return nil
	}
	askers, err := people.LockUsers(ctx, tx, ids)
	if err != nil {
		return err
	}
	for _, r := range requests {
		if refusal, refused := RefusePerson(askers[r.user], r.company); r.part && refused {
			r.barred = refusal
		}
	}
	return nil
}
