package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

// smppKey makes a key of kind SMPP, with a bind and a waiting message.
func (w *world) smppKey(u people.User, name string) (key keys.Token, password string, bind int64) {
	w.t.Helper()
	key, password, err := w.keys.CreateSMPPKey(w.t.Context(), u.ID, name,
		[]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, keys.SMPPLimits{})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.pool.QueryRow(w.t.Context(), `insert into smpp_binds (account, process, peer, mode, seen_at, submitted,
		refused, in_flight, unanswered)
		values ($1, 'gw-1', '192.0.2.7:4000', 'transceiver', now() + interval '1 hour', 1234, '{"ESME_RTHROTTLED": 77}', 3, 5)
		returning id`, key.ID).Scan(&bind); err != nil {
		w.t.Fatal(err)
	}
	w.exec(`insert into smpp_deliveries (account, phone_number, address, at, body) select $1, '+25779000001', 'A', now(),
		'x' from generate_series(1, 41)`, key.ID)
	return key, password, bind
}

var smppPassword = regexp.MustCompile(`<code id="(\w{10})" tabindex="0">(\w{8})</code>`)

// TestSMPPPage: a company makes a key and sees its password once; it sees and ends its binds and no others.
func TestSMPPPage(t *testing.T) {
	w := newWorld(t, nil)
	c, u, _ := w.owner()
	c.wants(c.get("/smpp"), http.StatusOK, "No SMPP keys yet",
		"up to 4 binds at a time, a window of 10, and 20 segments per second", `href="https://api.example.com/docs/smpp"`)
	for networks, want := range map[string]string{"": "required", ",": "Enter up to 10 IP addresses",
		"the office": "Enter up to 10 IP addresses"} {
		c.wants(c.post("/smpp", "name", "Bank", "networks", networks), http.StatusUnprocessableEntity,
			`id="f-networks-wrong"`, want)
	}
	form := fieldOnPage("key").FindStringSubmatch(c.get("/smpp").body)[1]
	for range 2 { // a double click
		c.wants(c.post("/smpp", "name", "Core <banking>", "networks", "192.0.2.0/24, 198.51.100.7", "key", form),
			http.StatusSeeOther)
	}
	w.counts(1, `select count(*) from api_tokens`)
	made := c.get("/smpp")
	c.wants(made, http.StatusOK, "Your new SMPP key “Core &lt;banking&gt;”", "192.0.2.0/24, 198.51.100.7/32",
		"4 binds · window 10 · 20 segments/s", "No program is bound")
	login := smppPassword.FindStringSubmatch(made.body)
	if login == nil {
		t.Fatalf("no password:\n%s", made.body)
	}
	if _, err := w.holders.SMPPLogin(t.Context(), login[1], login[2], "192.0.2.9"); err != nil {
		t.Errorf("the login of the page: %v", err)
	}
	if again := c.get("/smpp"); smppPassword.MatchString(again.body) || strings.Contains(again.body, login[2]) {
		t.Error("the password is shown twice")
	}
	if keys := c.get("/keys"); strings.Contains(keys.body, "banking") { // it is no key for HTTP
		t.Errorf("/keys shows the SMPP key:\n%s", keys.body)
	}

	key, _, bind := w.smppKey(u, "Till")
	bob := w.user("bob@example.com", false)
	w.company(bob.Email, "Bobco")
	bobs, _, bobsBind := w.smppKey(bob, "Bob's key")
	page := c.get("/smpp")
	c.wants(page, http.StatusOK, "192.0.2.7:4000", "transceiver", "3 of 10 submit_sm", "5 deliver_sm", "1,234",
		"ESME_RTHROTTLED", "77", "41 receipts and messages wait")
	if strings.Contains(page.body, "Bob") || strings.Contains(page.body, bobs.SystemID) ||
		strings.Count(page.body, "192.0.2.7:4000") != 1 || strings.Contains(page.body, "gw-1") {
		t.Errorf("the page has what is not the company's to see:\n%s", page.body)
	}
	path := func(id int64, act string) string { return fmt.Sprintf("/smpp/%d/%s", id, act) }
	for _, p := range []string{path(bobs.ID, "unbind"), path(bobs.ID, "revoke"), "/smpp/0/unbind", "/smpp/x/unbind",
		"/smpp/99/revoke"} {
		c.wants(c.post(p, "bind", fmt.Sprint(bobsBind)), http.StatusNotFound)
	}
	for _, other := range []string{fmt.Sprint(bobsBind), "x", "-1", "0"} { // a bind of another key, and none at all
		c.wants(c.post(path(key.ID, "unbind"), "bind", other), http.StatusSeeOther)
	}
	w.counts(0, `select count(*) from smpp_binds where unbind`)
	c.wants(c.post(path(key.ID, "unbind"), "bind", fmt.Sprint(bind)), http.StatusSeeOther)
	w.counts(1, `select count(*) from smpp_binds where unbind`)
	c.wants(c.post(path(key.ID, "revoke")), http.StatusSeeOther)
	if key, err := w.keys.TokenByID(t.Context(), key.ID); err != nil || key.RevokedAt == nil {
		t.Errorf("not revoked: %+v, %v", key, err)
	}
	c.wants(c.get("/smpp"), http.StatusOK, "Revoked")
	if got := strings.Join(w.acts(1), " "); got != "token.create smpp.unbind token.revoke" {
		t.Errorf("recorded: %s", got)
	}
}

// TestAdminSMPP: administrators see the keys and binds of all companies, page by page, change limits and end binds.
func TestAdminSMPP(t *testing.T) {
	w := newWorld(t, nil)
	_, u, company := w.owner()
	key, password, bind := w.smppKey(u, "Till")
	root := newClient(w)
	root.inside("root@example.com")
	root.wants(root.get("/admin/smpp"), http.StatusOK, "Till", "Isoko", "192.0.2.7:4000", "gw-1", "ESME_RTHROTTLED",
		"41 receipts", `href="/admin/smpp" aria-current="page"`)
	home := fmt.Sprintf("/admin/smpp/%d", key.ID)
	good := map[string]string{"sessions": "8", "window": "50", "tps": "200", "alphabet": "latin1",
		"networks": "203.0.113.0/24"}
	post := func(field, value string) answer {
		var pairs []string
		for name, given := range good {
			if name == field {
				given = value
			}
			pairs = append(pairs, name, given)
		}
		return root.post(home, pairs...)
	}
	for _, wrong := range [][2]string{{"sessions", "101"}, {"sessions", "0"}, {"window", ""}, {"window", "x"},
		{"tps", "10001"}, {"tps", "-1"}, {"alphabet", "ascii"}, {"networks", ""}, {"networks", ","},
		{"networks", "the office"}} {
		root.wants(post(wrong[0], wrong[1]), http.StatusUnprocessableEntity, "Not saved: a key has 1 to 100 binds")
	}
	root.wants(post("", ""), http.StatusSeeOther)
	if set, err := w.keys.TokenByID(t.Context(), key.ID); err != nil ||
		set.SMPPLimits != (keys.SMPPLimits{Sessions: 8, Window: 50, TPS: 200, Alphabet: keys.AlphabetLatin1}) {
		t.Errorf("%+v, %v", set, err)
	}
	if _, err := w.holders.SMPPLogin(t.Context(), key.SystemID, password, "192.0.2.9"); !errors.Is(err, keys.ErrNetwork) {
		t.Errorf("from the old network: %v", err)
	}
	root.wants(root.post("/admin/smpp/99", "sessions", "8", "window", "50", "tps", "200", "networks", "203.0.113.0/24"),
		http.StatusNotFound)
	root.wants(root.post(home+"/unbind", "bind", fmt.Sprint(bind)), http.StatusSeeOther)
	w.counts(1, `select count(*) from smpp_binds where unbind`)
	root.wants(root.get(web.CompanyPath(company.ID)), http.StatusOK, "SMPP, <code>"+key.SystemID, "SMPP binds ended",
		"SMPP key changed")

	w.exec(`insert into api_tokens (user_id, name, secret_hash, scopes, networks, system_id, sessions, "window", tps)
		select $1, 'many ' || n, decode(repeat('00', 32), 'hex'), '{smpp}', '{192.0.2.0/24}', 'many' || n, 100, 10, 20
			from generate_series(1, 60) n`, u.ID)
	w.exec(`insert into smpp_binds (account, process, peer, mode, seen_at) select $1, 'p', '192.0.2.8:' || n, 'receiver',
		now() + interval '1 hour' from generate_series(1, 300) n`, key.ID)
	pages := root.pages("/admin/smpp")
	if len(pages) != 2 || strings.Count(pages[0].body, "192.0.2.8:") != 200-1 ||
		!strings.Contains(pages[0].body, "Only the first 200") || !strings.Contains(pages[1].body, "many 60") {
		t.Errorf("%d pages", len(pages))
	}
}

// TestWithoutSMPP: an installation without smpp_server.listen has no page about it.
func TestWithoutSMPP(t *testing.T) {
	w := newWorld(t, func(_ *Deps, o *Options) { o.SMPP = false })
	c, _, _ := w.owner()
	if home := c.get("/"); strings.Contains(home.body, "/smpp") {
		t.Error("the navigation names SMPP")
	}
	c.wants(c.get("/smpp"), http.StatusNotFound)
	root := newClient(w)
	root.inside("root@example.com")
	if page := root.get("/admin/companies"); strings.Contains(page.body, "/admin/smpp") {
		t.Error("the administration names SMPP")
	}
	root.wants(root.get("/admin/smpp"), http.StatusNotFound)
}
