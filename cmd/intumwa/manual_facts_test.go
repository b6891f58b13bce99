package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestSilentStop: the commands by which docs/runbooks/unusual-sending.md stops a company without a word mail nobody and
// refuse its senders; the withdrawal of the company's approval, which the page puts last, mails its owner.
func TestSilentStop(t *testing.T) {
	page, err := os.ReadFile("../../docs/runbooks/unusual-sending.md")
	if err != nil {
		t.Fatal(err)
	}
	_, silent, found := strings.Cut(string(page), "These commands mail nobody.")
	block := regexp.MustCompile("(?s)```\n(.*?)```").FindStringSubmatch(silent)
	if !found || block == nil {
		t.Fatal("the page has no commands that mail nobody")
	}
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	sender := number(s.admin("", "sender_id name approved", "sender", "create", "--company", company, "--name", "ACME",
		"--approved")["sender_id"])
	letters := func() (n int) {
		t.Helper()
		if err := s.pool().QueryRow(t.Context(), `SELECT count(*) FROM letters`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ran := 0
	for line := range strings.Lines(block[1]) {
		command, _, _ := strings.Cut(line, "#")
		words := strings.Fields(strings.NewReplacer("SENDER", sender, "ID", company).Replace(command))
		if len(words) == 0 {
			continue
		}
		if code, _, stderr := s.run("", words[1:]...); code != exitOK {
			t.Fatalf("%s: %s", line, stderr)
		}
		if n := letters(); n != 0 {
			t.Errorf("%s: %d mails wait", line, n)
		}
		ran++
	}
	var approved bool
	if err := s.pool().QueryRow(t.Context(), `SELECT approved FROM senders WHERE id = $1::bigint`, sender).Scan(
		&approved); err != nil || approved || ran < 2 {
		t.Errorf("approved %v, %v, after %d commands", approved, err, ran)
	}
	s.run("", "admin", "company", "set", "--id", company, "--approved=true")
	before := letters()
	s.run("", "admin", "company", "set", "--id", company, "--approved=false")
	if before == 0 {
		t.Error("an approval mails nobody: the page may be wrong about its withdrawal too")
	}
	if _, after, found := strings.Cut(string(page), "--approved=false                           # at the end: "+
		"mails the owner"); !found || strings.Contains(after, "company set --id ID --approved=false") {
		t.Error("the page does not put the withdrawal last")
	}
}

// TestMemoryOnPage: docs/machines.md advises GOMEMLIMIT only where four fifths of the limit are below the gateway's
// own.
func TestMemoryOnPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/machines.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("With a limit below %d MiB, set `GOMEMLIMIT` to four fifths of it. Above that leave it unset: "+
		"the gateway sets %d MiB itself.", memoryLimit/4*5>>20, memoryLimit>>20)
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("the page does not say: %s", want)
	}
}
