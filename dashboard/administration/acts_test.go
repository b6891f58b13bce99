package administration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"intumwa/texts"
)

// TestRecordedValues: the audit log shows names and values in words.
func TestRecordedValues(t *testing.T) {
	all, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	french, _ := all.ByTag("fr")
	for record, want := range map[string]string{
		`{"role": "developer"}`: "Développement", `{"state": "sent"}`: french.T("registration.sent"),
		`{"state": "waiting"}`:                            french.T("verification.text.waiting"),
		`{"scopes": ["send", "read"]}`:                    "Envoyer, Lire",
		`{"networks": ["192.0.2.0/24", "2001:db8::/32"]}`: "192.0.2.0/24, 2001:db8::/32", `{"events": []}`: "–",
		`{"low_balance": [5000, 100]}`: "5\u202f000, 100",
		`{"approved": true}`:           "oui", `{"name": "sent"}`: "sent", `{"note": "[facture]"}`: "[facture]",
		`{"to": "refuse"}`: "aucun opérateur", `{"to": "leo"}`: "leo", `{"bodies": "final"}`: "jusqu’à l’issue du message",
		`{"credits": 1234567}`: "1\u202f234\u202f567", `{"company_id": 12345}`: "12345",
		`{"valid_from": "2026-02-01"}`: "1 févr. 2026", `{"bif": 1250.5}`: french.T("money.bif", "1\u202f250,5"),
		`{"previous_until": "2026-03-31T22:05:00Z"}`: "1 avr. 2026, 00:05:00", `{"daily_cap": null}`: "–",
		`{"locale": "rn"}`: french.T("verification.rn"), `{"kind": "correction"}`: french.T("statement.kind.correction"),
	} {
		if got := changesOf(french, nil, json.RawMessage(record)); len(got) != 1 || got[0].After != want {
			t.Errorf("%s: %+v, want %q", record, got, want)
		}
	}
	states, names := regexp.MustCompile(`(?:fields|any)\{[^}]*\}|recorded\["[^=]*=`),
		regexp.MustCompile(`"([a-z_]+)"(?::|\])`)
	files, _ := filepath.Glob("../../operations/*.go")
	for _, file := range append(files, "../../accounts/keys/token.go", "../../accounts/keys/smppkey.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range states.FindAllString(string(text), -1) {
			for _, found := range names.FindAllStringSubmatch(state, -1) {
				if stateTexts[found[1]] == "" {
					t.Errorf("%s: the recorded name %s has no text", file, found[1])
				}
			}
		}
	}
}
