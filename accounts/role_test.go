package accounts

import (
	"strings"
	"testing"
)

func TestRights(t *testing.T) {
	t.Parallel()
	all := []Right{MayUse, MayRead, MaySend, MayDevelop, MayPay, MayManage}
	for role, want := range map[Role]string{
		RoleOwner: "use read send develop pay manage", RoleSender: "use read send", RoleDeveloper: "use read develop",
		RoleFinance: "use pay", RoleReader: "use read", "": "", "admin": "",
	} {
		var may []string
		for _, right := range all {
			if role.May(right) {
				may = append(may, string(right))
			}
		}
		if got := strings.Join(may, " "); got != want {
			t.Errorf("%s may %s, want %s", role, got, want)
		}
	}
	if len(Roles) != len(rights) {
		t.Errorf("%d roles, %d have rights", len(Roles), len(rights))
	}
}
