package texts

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	keyText      = regexp.MustCompile(`"([a-z0-9]+(?:\.[a-z0-9]+)+)"`)
	action       = regexp.MustCompile(`\{\{[^-].*?\}\}`)
	actText      = regexp.MustCompile(`"([a-z_]+(?:\.[a-z_]+)+)"`)
	placeholder  = regexp.MustCompile(`\{\d\}`)
	templateName = regexp.MustCompile(`\{\{(define|template) "[^"]*"`)
)

// composed are the acts whose names package operations puts together.
var composed = []string{"batch.cancel.done", "company.cancel.done", "test_send", "unanswered.cancelled",
	"unanswered.failed", "unanswered.send",
	"unanswered.sent", "user.demote", "user.disable", "user.enable", "user.reset"}

// used returns the keys in the dashboard's templates and code, with a file for each, and a key for each act of package
// operations: its texts with a dot, and composed.
func used(t *testing.T) map[string]string {
	t.Helper()
	keys := map[string]string{}
	for _, act := range composed {
		keys["act."+act] = "../operations"
		if strings.HasPrefix(act, "user.") {
			keys["flash."+act] = "../dashboard"
		}
	}
	for _, pattern := range []string{"../dashboard/*/*.html", "*.go", "../dashboard/*.go", "../dashboard/*/*.go",
		"../campaigns/*.go", "../campaigns/sheets/*.go", "../contacts/*.go",
		"../reports/exports/*.go", "../internal/letters/*.go", "../operations/*.go"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := string(content)
			switch {
			case strings.HasSuffix(file, "_test.go"):
				continue
			case strings.HasSuffix(file, ".html"):
				text = strings.Join(action.FindAllString(templateName.ReplaceAllString(text, "{{"), -1), " ")
			}
			if strings.HasPrefix(pattern, "../operations") {
				for _, act := range actText.FindAllStringSubmatch(text, -1) {
					keys["act."+act[1]] = file
				}
				continue
			}
			for _, key := range keyText.FindAllStringSubmatch(text, -1) {
				if extension := path.Ext(key[1]); extension != ".css" && extension != ".js" && extension != ".svg" {
					keys[key[1]] = file
				}
			}
		}
	}
	if len(keys) < 100 || keys["act.link.pause"] == "" || keys["act.webhook.rotation_end"] == "" {
		t.Fatalf("found only %d keys", len(keys))
	}
	return keys
}

// TestTexts: English and French have exactly the keys that are used, including one for every recorded act, with the
// same placeholders.
func TestTexts(t *testing.T) {
	w, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]bool{}
	keys := used(t)
	for _, l := range w.Languages {
		for key, where := range keys {
			_, one := l.texts[key+".one"]
			_, other := l.texts[key+".other"]
			if one && other {
				counted[key+".one"], counted[key+".other"] = true, true
				continue
			}
			if !l.Has(key) {
				t.Errorf("%s: the text %s, used in %s, is missing", l.Tag, key, where)
			}
		}
		for _, key := range l.Keys() {
			if _, ok := keys[key]; !ok && !counted[key] {
				t.Errorf("%s: the text %s is not used", l.Tag, key)
			}
		}
	}
	for _, l := range w.Languages[1:] {
		for _, key := range l.Keys() {
			french, ok := w.Languages[0].texts[key]
			if !ok {
				t.Errorf("%s: there is no text %s in French", l.Tag, key)
				continue
			}
			if a, b := placeholder.FindAllString(french, -1), placeholder.FindAllString(l.texts[key], -1); !slices.Equal(
				slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))) {
				t.Errorf("%s: %s fills in %v, in French %v", l.Tag, key, b, a)
			}
		}
	}
}

func TestMatch(t *testing.T) {
	w, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]string{
		"": "fr", "en": "en", "en-GB,fr;q=0.5": "en", "fr-FR,en;q=0.9": "fr", "rn-BI": "fr", "de": "fr", "de,en;q=0.1": "en",
		"%%%": "fr", strings.Repeat("en,", 1000): "fr",
	} {
		if got := w.Match(header).Tag; got != want {
			t.Errorf("%.40q: %s, want %s", header, got, want)
		}
	}
}

// TestCellID: an id that a spreadsheet would take for a number and change is a text.
func TestCellID(t *testing.T) {
	for id, want := range map[string]string{"7301234567890123456": "'7301234567890123456",
		"123456789012345": "123456789012345", "0012": "'0012", "12E5": "'12E5", "1.20": "'1.20",
		"A12": "A12", "1000A3": "1000A3", "=1": "'=1", "": "", "12 13": "12 13", "0": "'0"} {
		if got := CellID(id); got != want {
			t.Errorf("%q: %q", id, got)
		}
	}
}

func TestFormats(t *testing.T) {
	w, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 31, 22, 5, 0, 0, time.UTC) // the first of April in Bujumbura
	for i, want := range [][]string{
		{"1\u202f234\u202f567", "−12", "1 avr. 2026, 00:05"},
		{"1,234,567", "−12", "1 Apr 2026, 00:05"},
	} {
		l := w.Languages[i]
		if got := []string{l.Number(1234567), l.Number(-12), l.Time(at)}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", l.Tag, got, want)
		}
	}
	if got := w.Languages[1].N("account.twostep.codes", 0); !strings.HasPrefix(got, "0 recovery codes") {
		t.Error(got)
	}
	if got := w.Languages[0].N("account.twostep.codes", 0); !strings.HasPrefix(got, "Il reste 0 code ") {
		t.Error(got)
	}
}
