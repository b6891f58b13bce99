package handsets_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"intumwa/inbound/handsets"
)

// TestWords: the first runs of letters and digits are the words, whatever is between and around them.
func TestWords(t *testing.T) {
	for text, want := range map[string]handsets.Words{
		"STOP":                     {"STOP", "", false},
		"  stop.  ":                {"STOP", "", false},
		"« Arrêt »":                {"ARRET", "", false},
		"arre\u0302t acme":         {"ARRET", "ACME", false},
		"HAGARIKA!\nAcme, urakoze": {"HAGARIKA", "ACME", true},
		"Stop-it":                  {"STOP", "IT", false},
		"STOP.Murakoze":            {"STOP", "MURAKOZE", false},
		"STOP,merci":               {"STOP", "MERCI", false},
		"STOP/ACME":                {"STOP", "ACME", false},
		"STOP!!!":                  {"STOP", "", false},
		"ARRÊT.":                   {"ARRET", "", false},
		"(stop)":                   {"STOP", "", false},
		"\"STOP\"":                 {"STOP", "", false},
		"STOP😀":                    {"STOP", "", false},
		"S\u200bTOP":               {"STOP", "", false},
		"\u200eSTOP":               {"STOP", "", false},
		"#STOP#ACME#":              {"STOP", "ACME", false},
		"STOP_ACME":                {"STOP", "ACME", false},
		"PAY#500":                  {"PAY", "500", false},
		"PAY*500#":                 {"PAY", "500", false},
		"PAY:500":                  {"PAY", "500", false},
		"pay500":                   {"PAY500", "", false},
		"STOPPER":                  {"STOPPER", "", false},
		"Stop this bill now":       {"STOP", "THIS", true},
		"ne pas STOP":              {"NE", "PAS", true},
		"":                         {"", "", false},
		" ... !!! ":                {"", "", false},
		"\u00a0stop\u2003now":      {"STOP", "NOW", false},
		"ŞTÖP Ñandú":               {"STOP", "NANDU", false},
		"1 2":                      {"1", "2", false},
		"STOP\x00\x02":             {"STOP", "", false},
		strings.Repeat("x", 200):   {"?", "", false},
	} {
		if got := handsets.FirstWords(text); got != want {
			t.Errorf("%q begins with %+v, want %+v", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		w := handsets.FirstWords(text)
		for _, word := range []string{w.First, w.Second} {
			if word != "?" && handsets.Word(word) != word {
				t.Fatalf("%q has the word %q, which is not as words are compared", text, word)
			}
		}
	})
}

// TestAddresses: each form of an address gives the same one.
func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"8080": "8080", "+8080": "8080", "25779000000": "25779000000", "+25779000000": "25779000000",
		"0025779000000": "25779000000",
		"79000000":      "25779000000", " Acme ": "ACME", "acme\x00": "ACME", "": "",
		"+257 79 00-00.00": "25779000000", "(80) 80": "8080", "00 250 788 123 456": "250788123456", "0080": "0080",
		"0079000000": "0079000000", "00025779000000": "25779000000", "My 1-2": "MY 1-2",
	} {
		if got := handsets.Address(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestRoutesMatch: each accepted address and keyword matches a message written so; one that cannot match is refused.
func TestRoutesMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`\+?[0-9 ().-]{1,24}`),
			rapid.StringMatching(`[ -~]{1,14}`)).Draw(t, "text")
		if keyword, err := handsets.Keyword(text); err == nil {
			if words := handsets.FirstWords(text + " 500"); words.First != keyword || keyword == "" {
				t.Fatalf("the keyword %q is %q, a message begins with %+v", text, keyword, words)
			}
			if again, err := handsets.Keyword(keyword); err != nil || again != keyword {
				t.Fatalf("the keyword %q is %q, and then %q, %v", text, keyword, again, err)
			}
		}
		if address, err := handsets.RouteAddress(text); err == nil && len(address) != 8 {
			// +79000000 is not a number, 79000000 is one
			if again, err := handsets.RouteAddress(address); err != nil || again != address ||
				handsets.Address(address) != address {
				t.Fatalf("the address %q is %q, and then %q, %v", text, address, again, err)
			}
		}
	})
}
