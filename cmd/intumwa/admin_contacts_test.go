package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdminContacts: an operator imports, lists, exports and deletes a company's contacts. The audit log has each act
// without the numbers, and the owner gets a mail about the export.
func TestAdminContacts(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	file := filepath.Join(t.TempDir(), "parents.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tel;nom;classe;groupe\n79123401;Aline;3;Parents\n71234502;Éric;4;Parents\n")
	of := func(args ...string) []string {
		return append([]string{"contacts", args[0], "--company", company}, args[1:]...)
	}
	const keys = "import_id lines added changed unchanged refused repeated"
	if got := s.admin("", keys, of("import", file, "--dry-run")...); fmt.Sprint(got["added"]) != "2" {
		t.Error(got)
	}
	s.holds(`SELECT count(*) FROM contact_imports`, 0)
	if got := s.admin("", keys, of("import", file, "--consent", "form 2026")...); fmt.Sprint(got["added"]) != "2" {
		t.Error(got)
	}
	list := s.list(of("list", "--name", "ali")...)
	if len(list) != 1 || list[0]["phone_number"] != "+25779123401" || list[0]["consent_source"] != "form 2026" ||
		fmt.Sprint(list[0]["fields"]) != "map[classe:3]" {
		t.Error(list)
	}
	if list := s.list(of("list", "--number", "71 23", "--group", "1")...); len(list) != 1 {
		t.Error(list)
	}
	s.refused("--limit is from 1 to 1000", "", append([]string{"admin"}, of("list", "--limit", "0")...)...)
	s.refused("there is no company with id 999", "", "admin", "contacts", "list", "--company", "999")
	if _, table, _ := s.run("", append([]string{"admin"}, of("list", "--name", "ali")...)...); !strings.Contains(table,
		"  classe=3  ") || strings.Contains(table, "nil") {
		t.Errorf("as a table: %s", table)
	}
	code, stdout, stderr := s.run("", append([]string{"admin"}, of("export", "--group", "1")...)...)
	if code != exitOK || !strings.Contains(stdout, "25779123401,Aline,,Parents,form 2026,") || stderr != "" {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
	s.holds(`SELECT count(*) FROM letters WHERE kind = 'contacts' AND said->>'contacts' = '2'`, 1)
	if got := s.admin("", "deleted", of("delete", "--number", "79123401")...); fmt.Sprint(got["deleted"]) != "1" {
		t.Error(got)
	}
	if got := s.admin("", "deleted", of("delete", "--group", "1")...); fmt.Sprint(got["deleted"]) != "1" {
		t.Error(got)
	}
	s.holds(`SELECT (SELECT count(*) FROM contacts) + (SELECT contacts FROM contact_books) + (SELECT members
		FROM contact_groups)`, 0)
	for reason, args := range map[string][]string{
		"one of --id, --number, --group and --all": of("delete"),
		"no such contact or group":                 of("delete", "--id", "1"),
		"the company has no such group":            of("delete", "--group", "99"),
		"not the beginning of a number":            of("list", "--number", "x"),
		"no company with id 99":                    {"contacts", "import", "--company", "99", file},
	} {
		s.refused(reason, "", append([]string{"admin"}, args...)...)
	}
	write("nom;ville\nAline;Gitega\n")
	s.refused("line 1: No column has phone numbers", "", append([]string{"admin"}, of("import", file)...)...)
	write("tel;nom\n79123401;Aline\n12;B\n")
	code, stdout, stderr = s.run("", append([]string{"admin"}, of("import", file)...)...)
	if code != exitOK || !strings.Contains(stdout, "refused    1") || !strings.Contains(stderr, "line 3: “12” is not") {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
	var acts []string
	for _, act := range s.list("log") {
		if name := fmt.Sprint(act["act"]); strings.HasPrefix(name, "contacts.") {
			acts = append(acts, name)
		}
		if strings.Contains(fmt.Sprint(act), "123401") {
			t.Errorf("the record has the number: %v", act)
		}
	}
	if got := strings.Join(acts, " "); got != "contacts.import contacts.delete.done contacts.delete contacts.delete "+
		"contacts.export contacts.import" {
		t.Error(got)
	}
}
