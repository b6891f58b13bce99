package dashboard

import (
	"context"

	"intumwa/dashboard/web"
	"intumwa/internal/audit"
	"intumwa/operations"
)

// by returns the signed-in user, who performs acts. Entries of the audit log are permanent, so each user may add only
// so many.
func (d *Dashboard) by(v *web.Visit) operations.Actor {
	return operations.By(audit.User(v.Session.User.ID), func(ctx context.Context) error {
		if changes := d.deps.Tries.Changes; changes != nil && !changes.Allow(ctx, v.Session.User.ID).Allowed {
			return web.ErrChanges
		}
		return nil
	}, d.operations)
}
