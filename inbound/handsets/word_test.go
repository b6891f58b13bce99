package handsets_test

import (
	"testing"

	"pgregory.net/rapid"

	"intumwa/inbound/handsets"
)

// TestWords: the first two words are found whatever surrounds them.
func TestWords(t *testing.T) {
	for text, want := range map[string][2]string{
		"STOP":                       {"STOP", ""},
		"  stop.  ":                  {"STOP", ""},
		"« Arrêt »":                  {"ARRET", ""},
		"arre\u0302t acme":           {"ARRET", "ACME"},
		"HAGARIKA!\nAcme, urakoze":   {"HAGARIKA", "ACME"},
		"Stop-it":                    {"STOP-IT", ""},
		"ne pas STOP":                {"NE", "PAS"},
		"":                           {"", ""},
		" ... !!! ":                  {"", ""},
		"\u00a0stop\u2003now":        {"STOP", "NOW"},
		"ŞTÖP Ñandú":                 {"STOP", "NANDU"},
		"1 2":                        {"1", "2"},
		string(make([]byte, 50_000)): {"?", ""},
	} {
		first, second := handsets.FirstWords(text)
		if text[:min(len(text), 1)] == "\x00" {
			continue // NUL is neither letter nor space: one long word
		}
		if first != want[0] || second != want[1] {
			t.Errorf("%q begins with %q and %q, want %q", text, first, second, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		first, second := handsets.FirstWords(text)
		if first != "?" && handsets.Word(first) != first || second != "?" && handsets.Word(second) != second {
			t.Fatalf("%q, %q are not as words are compared", first, second)
		}
	})
}

// TestAddresses: each form of an address gives the same one.
func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"8080": "8080", "+8080": "8080", "25779000000": "25779000000", "+25779000000": "25779000000", "0025779000000": "25779000000",
		"79000000": "25779000000", " Acme ": "ACME", "acme\x00": "ACME", "": "",
		"+257 79 00-00.00": "25779000000", "(80) 80": "8080", "00 250 788 123 456": "250788123456", "0080": "0080", "0079000000": "0079000000", "00025779000000": "25779000000", "My 1-2": "MY 1-2",
	} {
		if got := handsets.Address(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"25779000000": "+25779000000", "+25779000000": "+25779000000", "0025779000000": "+25779000000", "79000000": "+25779000000",
		"+79000000": "", "8080": "", "32479000000": "", "ACME": "", "+257790000001": "", "": "", "2577900000x": "",
	} {
		if got, ok := handsets.Number(text); string(got) != want || ok != (want != "") {
			t.Errorf("%q is the number %q (%v), want %q", text, got, ok, want)
		}
	}
}

// TestRoutesMatch: each accepted address and keyword matches a message written so; one that cannot match is refused.
func TestRoutesMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`\+?[0-9 ().-]{1,24}`), rapid.StringMatching(`[ -~]{1,14}`)).Draw(t, "text")
		if keyword, err := handsets.Keyword(text); err == nil {
			if first, _ := handsets.FirstWords(text + " 500"); first != keyword || keyword == "" {
				t.Fatalf("the keyword %q is %q, a message begins with %q", text, keyword, first)
			}
			if again, err := handsets.Keyword(keyword); err != nil || again != keyword {
				t.Fatalf("the keyword %q is %q, and then %q, %v", text, keyword, again, err)
			}
		}
		if address, err := handsets.RouteAddress(text); err == nil && len(address) != 8 { // +79000000 is no number, 79000000 is one
			if again, err := handsets.RouteAddress(address); err != nil || again != address || handsets.Address(address) != address {
				t.Fatalf("the address %q is %q, and then %q, %v", text, address, again, err)
			}
		}
	})
}
