package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestLowBalanceThresholds: a company's thresholds are set, shown and audited; without
// any, none are shown.
func TestLowBalanceThresholds(t *testing.T) {
	s := newAdmin(t)
	company := s.mustCompany("a@example.com")
	const flags = "company_id approved verified smart_encoding"
	set := s.admin("", flags+" low_balance", "company", "set", "--id", company, "--low-balance", "100,1000 , 100")
	if fmt.Sprint(set["low_balance"]) != "[1000 100]" {
		t.Errorf("%v", set)
	}
	s.admin("", flags+" low_balance", "company", "set", "--id", company, "--verified=true")
	for reason, text := range map[string]string{"no whole number": "many", "from 1 to": "0", "at most 5": "1,2,3,4,5,6"} {
		s.refused(reason, "", "admin", "company", "set", "--id", company, "--low-balance", text)
	}
	s.admin("", flags, "company", "set", "--id", company, "--low-balance", "")
	if _, out, _ := s.run("", "admin", "log", "--json"); !strings.Contains(out, `"low_balance":[1000,100]`) {
		t.Errorf("recorded %s", out)
	}
}
