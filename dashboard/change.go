package dashboard

import (
	"context"

	"intumwa/internal/audit"
	"intumwa/operations"
)

// by returns the signed-in user, who performs acts. Entries of the audit log are permanent, so each user may add only so
// many.
func (v *visit) by() operations.Actor {
	return operations.By(audit.User(v.session.User.ID), func(ctx context.Context) error {
		if changes := v.d.rooms.Tries.Changes; changes != nil && !changes.Allow(ctx, v.session.User.ID).Allowed {
			return errChanges
		}
		return nil
	}, v.d.operations)
}
