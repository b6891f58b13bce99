// Package texts has the texts of pages, mails and files, in French and English, and the formats of numbers and dates.
//
// A text is a line in a file of its language and noun (en/keys.txt): key, equals sign, text. {0}, {1} … are
// placeholders. A count has two keys, one ending in .one and one in .other. Both languages have every key. Tests check
// the files, and that pages use each key.
package texts

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/language"
)

//go:embed en fr
var files embed.FS

// tags of the languages. The first is for visitors who prefer neither.
var tags = []string{"fr", "en"}

var names = map[string]string{"fr": "Français", "en": "English"}

// Language is one of the languages.
type Language struct {
	Tag   string // fr or en
	Name  string // in the language itself
	texts map[string]string
}

// Texts are all languages.
type Texts struct {
	Languages []*Language
}

// Load returns the embedded texts, which a process reads once.
var Load = sync.OnceValues(load)

func load() (*Texts, error) {
	w := &Texts{}
	for _, tag := range tags {
		texts, err := read(tag)
		if err != nil {
			return nil, err
		}
		w.Languages = append(w.Languages, &Language{Tag: tag, Name: names[tag], texts: texts})
	}
	return w, nil
}

// unbroken keeps French punctuation on the line of its word.
var unbroken = strings.NewReplacer(" :", "\u00a0:", " ;", "\u00a0;", " ?", "\u00a0?", " !", "\u00a0!", "« ", "«\u00a0",
	" »", "\u00a0»", " %", "\u00a0%")

func read(tag string) (map[string]string, error) {
	paths, err := fs.Glob(files, tag+"/*.txt")
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, path := range paths {
		content, err := files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(content)) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			key, text, found := strings.Cut(line, "=")
			key, text = strings.TrimSpace(key), strings.TrimSpace(text)
			if tag == "fr" {
				text = unbroken.Replace(text)
			}
			if _, twice := texts[key]; twice || !found || text == "" {
				return nil, fmt.Errorf("texts/%s: the line of %q has no text, or stands there twice", path, key)
			}
			texts[key] = text
		}
	}
	return texts, nil
}

// ByTag returns the language with that tag, or false.
func (w *Texts) ByTag(tag string) (*Language, bool) {
	i := slices.Index(tags, tag)
	if i < 0 {
		return nil, false
	}
	return w.Languages[i], true
}

// Match returns the preferred language of an Accept-Language header.
func (w *Texts) Match(header string) *Language {
	if len(header) > 200 { // a longer header is useless
		header = ""
	}
	wanted, _, _ := language.ParseAcceptLanguage(header) // an unreadable header prefers nothing
	for _, tag := range wanted {
		base, _ := tag.Base()
		if l, ok := w.ByTag(base.String()); ok {
			return l
		}
	}
	return w.Languages[0]
}

// Keys returns the keys of all texts, sorted.
func (l *Language) Keys() []string { return slices.Sorted(maps.Keys(l.texts)) }

// Has reports whether there is such a text.
func (l *Language) Has(key string) bool {
	_, ok := l.texts[key]
	return ok
}

// Missing encloses the key of a missing text on a page. The tests look for it.
const Missing = "⟦"

// T returns a text with its arguments filled in.
func (l *Language) T(key string, args ...any) string {
	text, ok := l.texts[key]
	if !ok {
		return Missing + key + "⟧"
	}
	for i, arg := range args {
		shown := fmt.Sprint(arg)
		switch arg.(type) {
		case int, int64:
			shown = l.Number(arg)
		}
		text = strings.ReplaceAll(text, "{"+strconv.Itoa(i)+"}", shown)
	}
	return text
}

// N returns a text that counts: key.one or key.other, with the count, an int or int64, as {0}.
func (l *Language) N(key string, n any, args ...any) string {
	form := ".other"
	if count := whole(n); count == 1 || count == 0 && l.Tag == "fr" { // French has the singular for zero
		form = ".one"
	}
	return l.T(key+form, append([]any{n}, args...)...)
}
