package accounts

import "slices"

// Role is what a person does in a company. A user without a company has none.
type Role string

// The roles.
const (
	RoleOwner     Role = "owner"
	RoleSender    Role = "sender"
	RoleDeveloper Role = "developer"
	RoleFinance   Role = "finance"
	RoleReader    Role = "reader"
)

// Roles are all roles for a form, the least powerful first.
var Roles = []Role{RoleReader, RoleFinance, RoleSender, RoleDeveloper, RoleOwner}

// Right is a permission of roles. Each page and action of a company needs one.
type Right string

// The rights.
const (
	MayUse     Right = "use"     // the home page, counts by day, the own account
	MayRead    Right = "read"    // messages with their texts, campaigns, received messages, opt-outs, sender IDs
	MaySend    Right = "send"    // sending and cancelling, opt-outs
	MayDevelop Right = "develop" // API keys, webhooks, the test number and the first message
	MayPay     Right = "pay"     // the statement, and the warning of a low balance
	MayManage  Right = "manage"  // people, the company, new sender IDs
)

// rights is the only table of what each role may do.
var rights = map[Role][]Right{
	RoleOwner:     {MayUse, MayRead, MaySend, MayDevelop, MayPay, MayManage},
	RoleSender:    {MayUse, MayRead, MaySend},
	RoleDeveloper: {MayUse, MayRead, MayDevelop},
	RoleFinance:   {MayUse, MayPay},
	RoleReader:    {MayUse, MayRead},
}

// May reports whether the role has a right.
func (r Role) May(right Right) bool { return slices.Contains(rights[r], right) }

// RolesWith returns the roles that have a right.
func RolesWith(right Right) (roles []string) {
	for _, r := range Roles {
		if r.May(right) {
			roles = append(roles, string(r))
		}
	}
	return roles
}
