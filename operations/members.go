package operations

import "context"

// ChangeMembers makes a company's contacts members of one of its groups, or ends their memberships, and returns for how
// many it did. The error is [contacts.ErrNoGroup] if there is no such group.
func (a Actor) ChangeMembers(ctx context.Context, company, group int64, members []int64, join bool) (changed int,
	err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		name, change := "contacts.group_join", in.contacts().AddMembers
		if !join {
			name, change = "contacts.group_leave", in.contacts().RemoveMembers
		}
		if changed, err = change(ctx, company, group, members); err != nil || changed == 0 {
			return act{}, err
		}
		return on(name, "group", group, company, nil, fields{"contacts": changed}), nil
	})
	return changed, err
}
