package main

import (
	"strings"
	"testing"
)

// TestCarrierWords: unknown states of receipts are listed with the line that gives them a meaning; others are not.
func TestCarrierWords(t *testing.T) {
	s := newAdmin(t)
	for id, state := range []string{"BUFFRED", "BUFFRED", "ENROUTE", "DELIVRD", "12"} {
		s.stray(id, "lumitel", state, string(rune('a'+id)))
	}
	s.stray(9, "leo", "ACKED", "z")
	s.exec(`INSERT INTO receipts (carrier, link, key, carrier_id, number, state, error, outcome, checked)
		VALUES ('lumitel', 'l', 'y', 'y', '', 'FORGED', '', 'unmatched', true)`)
	code, stdout, stderr := s.run("", "admin", "--json", "carrier", "words", "--carrier", "lumitel")
	if want := `{"carrier":"lumitel","state":"BUFFRED","receipts":2,`; code != exitOK ||
		!strings.HasPrefix(stdout, "["+want) || strings.Count(stdout, `"state"`) != 2 ||
		!strings.Contains(stdout, `"set":"receipt_states: {\"12\": sent} # or failed, none"`) {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	if _, stdout, _ = s.run("", "admin", "--json", "carrier", "words"); strings.Count(stdout, `"state"`) != 3 {
		t.Error(stdout)
	}
	if _, stdout, _ = s.run("", "admin", "--json", "unmatched", "--carrier", "lumitel"); strings.Count(
		stdout, `"unmarked":true`) != 1 {
		t.Error(stdout)
	}
}
