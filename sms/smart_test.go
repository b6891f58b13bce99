package sms_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"intumwa/sms"
)

func TestTransliterate(t *testing.T) {
	for text, want := range map[string]string{
		"":          "",
		"L'été {à}": "L'été {à}",
		"l’été, ça «va» très\u00a0bien…": `l'été, ca "va" très bien...`,
		"Prêt à l’hôtel — cœur":          "Pret à l'hotel - coeur",
		"cafe\u0301 a\u0302ge":           "café age",
		"\u0301a’":                       "a'",
		"ç 😀":                            "ç 😀", // no neighbour for one, so all stays
		"ж":                              "ж",
		"\u200b":                         "\u200b",                // would leave nothing
		strings.Repeat("½", 70):          strings.Repeat("½", 70), // would cost more
		"a\x1beb":                        "a\x1beb",
	} {
		if got := sms.Transliterate(text); got != want {
			t.Errorf("Transliterate(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestLookAlikes(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"L'été":                 "L'été",
		"« ç’est prêt » 😀…":     "\" c'est pret \" 😀...",
		"\u200bж\u0301 e\u0302": "ж\u0301 e", // a kept character keeps its mark
	} {
		if got := sms.LookAlikes(text); got != want {
			t.Errorf("LookAlikes(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTransliterateProperties(t *testing.T) {
	characters := rapid.SampledFrom([]rune("aeénçêœ’«»\u00a0\u0301\u0302½…😀ж\u200b"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(characters, 0, 200, -1).Draw(t, "text")
		got := sms.Transliterate(text)
		encoding, segments := sms.Count(got)
		_, before := sms.Count(text)
		if got != text && (encoding != sms.GSM7 || segments > before || segments == 0) {
			t.Fatalf("Transliterate(%q) = %q: %v, %d segments of %d", text, got, encoding, segments, before)
		}
		if again := sms.Transliterate(got); again != got {
			t.Fatalf("twice: %q", again)
		}
	})
}

func TestStatus(t *testing.T) {
	for status, name := range map[sms.Status]string{sms.Pending: "pending", sms.Sent: "sent", sms.Failed: "failed"} {
		parsed, ok := sms.ParseStatus(name)
		if status.String() != name || !ok || parsed != status || status.Final() != (name != "pending") {
			t.Errorf("status %d: %q, parsed %d", status, status, parsed)
		}
	}
	if _, ok := sms.ParseStatus("queued"); ok || sms.Status(9).String() != "unknown" || sms.Status(9).Final() {
		t.Error("an unknown status passed")
	}
}

func TestRefusal(t *testing.T) {
	err := fmt.Errorf("sending: %w", sms.Refusal{Reason: "empty", Text: "Recipient #3's message is empty."})
	var refusal sms.Refusal
	if !errors.As(err, &refusal) || refusal.Text != "Recipient #3's message is empty." || refusal.Error() != refusal.Text {
		t.Errorf("%v", err)
	}
}
