package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

// TestEBMS: the keys of ebms come together, the address is encrypted except on this machine, and the password is one
// line of a file, which only processes that log in must have.
func TestEBMS(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	password, long := file("password", "secret\n"), file("long", strings.Repeat("x", 31))
	cert, _ := testenv.Certificate(t)
	const operator = "operator: {name: N, nif: '4000000001', trade_register: '1', address: A, phone: '1', " +
		"invoices: {legal_form: SURL, activity_sector: T, fiscal_center: DMC, commune: M, quarter: R}, " +
		"taxes: [{name: TVA, rate: 18%, from: 2026-01-01, ebms: vat}, {name: Old, rate: 0%, from: 2026-01-01}]}\n"
	with := func(values string) string { return sound + "ebms: {" + values + "}\n" + operator }
	const open = "ebms.url (line 7): must be https://, except to this machine: the password would cross the network " +
		"readable"
	const bare = "ebms.url (line 7): must be https://host:port and nothing else"
	others := "username: ws1, system_id: ws1, password_file: " + password
	const user = "url: 'https://h', username: x, "
	for values, want := range map[string]string{
		user + "system_id: a/b, password_file: " + password: "ebms.system_id (line 7): must have printable ASCII " +
			"characters, without / and spaces",
		user + "system_id: a, password_file: " + long: "ebms.password_file (line 7): must have one line of " +
			"1-30 characters",
		"url: 'https://ebms.obr.gov.bi:8443/', ca: " + cert + ", " + others: "",
		"url: 'http://127.0.0.1:2783', " + others:                           "",
		"": "",
		"url: 'http://ebms.obr.gov.bi', " + others:                             open,
		"url: 'https://u:p@ebms.obr.gov.bi', " + others:                        bare,
		"url: 'https://ebms.obr.gov.bi/ebms_api', " + others:                   bare,
		"url: 'ebms.obr.gov.bi:8443', " + others:                               bare,
		"url: 'https://h', system_id: a, username: x, password_file: /nowhere": "ebms.password_file (line 7): no such file or directory",
		"url: 'https://h', system_id: a, username: x":                          "ebms.password_file: is required with ebms.url",
		"system_id: a": "ebms.url: is required with ebms.system_id",
		"url: 'https://h', ca: " + password + ", " + others: "ebms.ca (line 7): holds no certificate in PEM",
	} {
		t.Run(values, func(t *testing.T) {
			var all []string
			if want != "" {
				all = []string{want}
			}
			wants(t, checked(t, with(values)), all)
		})
	}
	complete := with("url: 'https://h', " + others)
	for change, want := range map[[2]string]string{
		{"phone: '1'", "phone: '123456789012345678901'"}: "operator.invoices (line 8): the eBMS would refuse it: " +
			"tp_phone_number has 21 characters, and the eBMS takes 20",
		{", ebms: vat", ""}: "operator.taxes[0] (line 8): needs ebms with ebms.url: vat, ct, tl, ott or tsce",
		{"invoices: {legal_form: SURL, activity_sector: T, fiscal_center: DMC, commune: M, quarter: R}, ", ""}: "operator.invoices: is required with ebms.url",
	} {
		wants(t, checked(t, strings.Replace(complete, change[0], change[1], 1)), []string{want})
	}
	c := load(t, with("url: 'https://h', system_id: a, username: x, password_file: /nowhere"))
	if got := c.Check("dispatcher"); got != nil {
		t.Error(got)
	}
	c = load(t, with("url: 'https://h', ca: "+cert+", "+others))
	if a, err := c.EBMS.Access(); err != nil || a.Password != "secret" || a.CA == nil || c.EBMS.System() != "ws1" {
		t.Errorf("%q, %v", a.Password, err)
	}
	if c := load(t, sound); c.EBMS.System() != "" {
		t.Error("it has a system without a URL")
	}
}
