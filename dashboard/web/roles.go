package web

import (
	"intumwa/accounts"
	"intumwa/texts"
)

// RoleTexts are the keys of a role's name and of its explanation.
var RoleTexts = map[accounts.Role]struct{ Name, Text string }{
	accounts.RoleOwner:     {"role.owner", "role.owner.text"},
	accounts.RoleSender:    {"role.sender", "role.sender.text"},
	accounts.RoleDeveloper: {"role.developer", "role.developer.text"},
	accounts.RoleFinance:   {"role.finance", "role.finance.text"},
	accounts.RoleReader:    {"role.reader", "role.reader.text"},
}

// RoleNames returns the names of all roles.
func RoleNames(l *texts.Language) map[accounts.Role]string {
	names := map[accounts.Role]string{}
	for role, texts := range RoleTexts {
		names[role] = l.T(texts.Name)
	}
	return names
}
