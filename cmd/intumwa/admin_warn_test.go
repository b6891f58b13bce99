package main

import (
	"strings"
	"testing"
)

// TestWarnings: what is no mistake and looks like one is said on standard error, beside the answer.
func TestWarnings(t *testing.T) {
	s := newAdmin(t)
	_, _, stderr := s.run("short", "admin", "user", "create", "--email", "a@example.com", "--name", "A", "--password-stdin")
	if !strings.Contains(stderr, "shorter than 10 characters") || strings.Contains(stderr, "short ") {
		t.Errorf("a password of five characters: %q", stderr)
	}
	one, other := s.mustCompany("b@example.com"), s.mustCompany("c@example.com")
	create := func(company, name string, more ...string) string {
		t.Helper()
		code, _, stderr := s.run("", append([]string{"admin", "sender", "create", "--company", company, "--name", name}, more...)...)
		if code != exitOK {
			t.Errorf("%s: %d %q", name, code, stderr)
		}
		return stderr
	}
	if said := create(one, "BANK", "--approved"); said != "" {
		t.Errorf("the first of its name: %q", said)
	}
	if said := create(other, "Bank"); said != "" {
		t.Errorf("one that is not approved: %q", said)
	}
	id := number(s.list("sender", "list")[1]["sender_id"])
	if _, _, said := s.run("", "admin", "sender", "set", "--id", id, "--approved=true"); !strings.Contains(said, "company "+one+" may send as BANK too") {
		t.Errorf("two companies may send under one name: %q", said)
	}
	if _, _, said := s.run("", "admin", "sender", "set", "--id", id, "--approved=false"); said != "" {
		t.Errorf("taken back: %q", said)
	}
}
