package intake

import (
	"context"
	"fmt"

	"intumwa/accounts"
	"intumwa/inbound/handsets"
	"intumwa/sms"
)

// Reasons why members of a group are left out of a batch to it.
const (
	LeftOutOptedOut     = "opted_out"
	LeftOutNoCarrier    = "no_carrier"
	LeftOutUnregistered = "sender_not_registered"
)

// RefuseAllLeftOut is the refusal of a batch to a group whose members are all left out.
var RefuseAllLeftOut = sms.Refusal{Reason: "group_left_out", Text: "No member of the group can be sent to."}

// readMembers sets the recipients of a batch to a group: its members, without those who have opted out of the sender
// and those whom it cannot reach. A member who opts out at this moment refuses the batch, as any recipient does.
func (in *Intake) readMembers(ctx context.Context, p *accounts.Principal, b *Batch) error {
	members, err := b.Members(ctx, p.Company.ID)
	if err != nil {
		return err
	}
	barred := map[int]bool{}
	if p.Company.OptOuts {
		pairs := make([]handsets.Pair, len(members))
		for i := range members {
			pairs[i] = handsets.Pair{CompanyID: p.Company.ID, Number: members[i].Number, Sender: b.Sender}
		}
		if barred, err = handsets.Barred(ctx, in.pool, pairs); err != nil {
			return fmt.Errorf("%w: looking for opt-outs: %w", ErrUnavailable, err)
		}
	}
	b.Recipients, b.leftOut = nil, map[string]int{}
	for i, m := range members {
		carrier, carried := in.Route(m.Number)
		switch {
		case barred[i]:
			b.leftOut[LeftOutOptedOut]++
		case !carried:
			b.leftOut[LeftOutNoCarrier]++
		case !in.WorksAt(p.Company, b.Sender, carrier):
			b.leftOut[LeftOutUnregistered]++
		default:
			b.Recipients = append(b.Recipients, m)
		}
	}
	if len(b.Recipients) == 0 {
		return RefuseAllLeftOut
	}
	return in.maySendBatch(p, b) // their countries
}
