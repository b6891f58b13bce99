package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"intumwa/accounts/keys"
	"intumwa/internal/testenv"
)

// TestSMPPKeys: keys of kind SMPP are made for a company's owner, listed with what their binds do, changed, unbound and
// revoked. The password works with the key for hashes of the configuration.
func TestSMPPKeys(t *testing.T) {
	const hashKey = "an otp key of at least 32 characters"
	t.Parallel()
	s := newShell(t, fmt.Sprintf("database: {url: %q}\naccounts: {otp_key: %q}\n", testenv.Database(t), hashKey))
	company, other := s.mustCompany("a@example.com"), s.mustCompany("b@example.com")
	s.admin("", "token_id token", "token", "create", "--user", "a@example.com", "--name", "HTTP")
	create := func(more ...string) []string {
		return append([]string{"smpp", "create", "--company", company, "--name", "bank"}, more...)
	}
	const made = "system_id password token_id company_id name networks sessions window tps alphabet"
	key := s.admin("", made, create("--networks", "192.0.2.0/24,198.51.100.7")...)
	if fmt.Sprint(key["sessions"], key["window"], key["tps"],
		key["networks"]) != "4 10 20 [192.0.2.0/24 198.51.100.7/32]" {
		t.Errorf("%v", key)
	}
	large := s.admin("", made, create("--networks", "192.0.2.0/24", "--sessions", "8", "--window", "50", "--tps",
		"200")...)
	known := keys.NewHolders(s.pool(), keys.Options{Key: []byte(hashKey)})
	systemID, password, id := fmt.Sprint(key["system_id"]), fmt.Sprint(key["password"]), number(key["token_id"])
	if _, err := known.SMPPLogin(t.Context(), systemID, password, "192.0.2.9"); err != nil {
		t.Errorf("the login that was printed: %v", err)
	}
	s.exec(`INSERT INTO smpp_binds (account, process, peer, mode, refused, seen_at)
		VALUES ($1, 'p0', '192.0.2.9:4000', 'transceiver', '{"ESME_RTHROTTLED": 3}', now() + '1 h'),
		($1, 'p1', '192.0.2.9:4001', 'receiver', '{}', now() + '1 h'), ($2, 'p0', '192.0.2.9:4002', 'receiver', '{}',
		now() + '1 h')`, key["token_id"], large["token_id"])
	s.exec(`INSERT INTO smpp_deliveries (account, phone_number, address, at, body) VALUES ($1, '+25779000001', 'A', now(),
		'x')`, key["token_id"])
	list := s.list("smpp", "list", "--company", company)
	if len(list) != 2 || number(list[0]["id"]) != id || list[0]["system_id"] != systemID ||
		fmt.Sprint(list[0]["binds"], list[0]["waiting"], list[1]["binds"], list[1]["waiting"]) != "2 1 1 0" ||
		strings.Contains(fmt.Sprint(list), password) {
		t.Errorf("%v", list)
	}
	if none := s.list("smpp", "list", "--company", other); len(none) != 0 {
		t.Errorf("another company's: %v", none)
	}
	if page := s.list("smpp", "list", "--after", id); len(page) != 1 {
		t.Errorf("the next page: %v", page)
	}
	sessions := s.list("smpp", "sessions")
	if len(sessions) != 3 || sessions[0]["system_id"] != systemID || number(sessions[0]["company_id"]) != company ||
		fmt.Sprint(sessions[0]["refused"]) != "map[ESME_RTHROTTLED:3]" {
		t.Errorf("%v", sessions)
	}
	if end := s.admin("", "id unbound", "smpp", "unbind", "--id", id, "--bind", number(sessions[1]["id"])); number(
		end["unbound"]) != "1" {
		t.Errorf("%v", end)
	}
	if end := s.admin("", "id unbound", "smpp", "unbind", "--id", id, "--bind", number(sessions[2]["id"])); number(
		end["unbound"]) != "0" {
		t.Errorf("a bind of another key: %v", end)
	}
	s.holds(`SELECT count(*) FROM smpp_binds WHERE unbind`, 1)
	set := s.admin(
		"", "id system_id company_id company name networks sessions window tps alphabet last_used_at revoked_at", "smpp",
		"set", "--id", id, "--tps", "100", "--alphabet", "latin1", "--networks", "203.0.113.0/24")
	if fmt.Sprintf("%v %v %v %v %v", set["sessions"], set["window"], set["tps"], set["alphabet"],
		set["networks"]) != "4 10 100 latin1 [203.0.113.0/24]" {
		t.Errorf("%v", set)
	}
	if _, err := known.SMPPLogin(t.Context(), systemID, password, "192.0.2.9"); !errors.Is(err, keys.ErrNetwork) {
		t.Errorf("from a network that is no longer the key's: %v", err)
	}
	route := s.admin("", "route_id address keyword carrier company_id sender smpp", "inbound", "route", "add", "--address",
		"8080", "--company", company, "--smpp", id)
	if number(route["smpp"]) != id {
		t.Errorf("%v", route)
	}
	s.admin("", "id revoked", "smpp", "revoke", "--id", number(large["token_id"]))
	for reason, args := range map[string][]string{
		"needs the networks":              create("--networks", ""),
		"is no network":                   create("--networks", "the office"),
		"tps is a number from 1 to 10000": create("--networks", "192.0.2.0/24", "--tps", "10001"),
		"--window must be at least 1":     create("--networks", "192.0.2.0/24", "--window", "0"),
		"--tps must be at least 1":        {"smpp", "set", "--id", id, "--tps", "0"},
		"it names no network":             {"smpp", "set", "--id", id, "--networks", ""},
		"no company with id": {"smpp", "create", "--company", "99", "--name", "x", "--networks",
			"192.0.2.0/24"},
		"no token with id 1":          {"smpp", "set", "--id", "1", "--tps", "5"}, // the key for HTTP
		"there is no token with id 1": {"smpp", "revoke", "--id", "1"},
		"is no token with id 1":       {"smpp", "unbind", "--id", "1"},
		"token with id 1": {"inbound", "route", "add", "--address", "9090", "--company", company,
			"--smpp", "1"},
		"company " + other + " has no valid key": {"inbound", "route", "add", "--address", "9090", "--company", other,
			"--smpp", id},
		// revoked
		"company " + company + " has no valid key": {"inbound", "route", "add", "--address", "9090", "--company", company,
			"--smpp", number(large["token_id"])},
		"names the operators' listener of the proc": {"smpp", "trace", "--system-id", "x", "--ops", "http://127.0.0.1:1"},
	} {
		s.refused(reason, "", append([]string{"admin"}, args...)...)
	}
	// A password that is hashed with another key than the server's never binds.
	keyless := newShell(t, fmt.Sprintf("database: {url: %q}\naccounts: {otp_key: '${file:not-here}'}\n", databaseOf(t, s)))
	keyless.refused("accounts.otp_key", "", append([]string{"admin"}, create("--networks", "192.0.2.0/24")...)...)
	keyless.list("smpp", "list")
}
