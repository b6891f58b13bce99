// Package words holds what the dashboard says, in French, English and Kirundi: texts by key, and how numbers and dates
// are written.
//
// A text stands in a file of its language and noun (en/keys.txt), a line each: key, equals sign, text. {0}, {1} … are
// filled in; a count has two keys, one ending in .one and one in .other. English and French have every key; what
// Kirundi lacks is said in French. Tests hold the files to that, and to the keys that pages use.
package words

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
)

//go:embed en fr rn
var files embed.FS

// Tags of the languages, the first of which stands in for what none matches.
var tags = []string{"fr", "en", "rn"}

// Language is one of the three.
type Language struct {
	Tag   string // fr, en or rn
	Name  string // as its speakers call it
	texts map[string]string
	other *Language // says what is lacking; nil in French and English
}

// Words are all languages.
type Words struct {
	Languages []*Language
	matcher   language.Matcher
}

var names = map[string]string{"fr": "Français", "en": "English", "rn": "Ikirundi"}

// Load reads the embedded texts.
func Load() (*Words, error) {
	w := &Words{}
	var supported []language.Tag
	for _, tag := range tags {
		texts, err := read(tag)
		if err != nil {
			return nil, err
		}
		w.Languages = append(w.Languages, &Language{Tag: tag, Name: names[tag], texts: texts})
		supported = append(supported, language.MustParse(tag))
	}
	w.Languages[2].other = w.Languages[0]
	w.matcher = language.NewMatcher(supported)
	return w, nil
}

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
			if _, twice := texts[key]; twice || !found || text == "" {
				return nil, fmt.Errorf("words/%s: the line of %q has no text, or stands there twice", path, key)
			}
			texts[key] = text
		}
	}
	return texts, nil
}

// ByTag is the language with that tag; false when there is none.
func (w *Words) ByTag(tag string) (*Language, bool) {
	i := slices.Index(tags, tag)
	if i < 0 {
		return nil, false
	}
	return w.Languages[i], true
}

// Match is the language that suits an Accept-Language header best.
func (w *Words) Match(header string) *Language {
	if len(header) > 200 { // what is longer chooses nothing sensible
		header = ""
	}
	wanted, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return w.Languages[0]
	}
	_, i, _ := w.matcher.Match(wanted...)
	return w.Languages[i]
}

// Keys are the keys that the language itself has.
func (l *Language) Keys() []string { return slices.Sorted(maps.Keys(l.texts)) }

// Has says whether there is such a text.
func (l *Language) Has(key string) bool {
	_, ok := l.text(key)
	return ok
}

func (l *Language) text(key string) (string, bool) {
	text, ok := l.texts[key]
	if !ok && l.other != nil {
		return l.other.text(key)
	}
	return text, ok
}

// Missing begins and ends what stands on a page in place of a text that there is not. The tests look for it.
const Missing = "⟦"

// T is a text with its arguments filled in.
func (l *Language) T(key string, args ...any) string {
	text, ok := l.text(key)
	if !ok {
		return Missing + key + "⟧"
	}
	for i, arg := range args {
		text = strings.ReplaceAll(text, "{"+strconv.Itoa(i)+"}", l.show(arg))
	}
	return text
}

func (l *Language) show(arg any) string {
	switch v := arg.(type) {
	case int:
		return l.Number(int64(v))
	case int64:
		return l.Number(v)
	default:
		return fmt.Sprint(v)
	}
}

// N is a text that counts: key.one or key.other, {0} being the count.
func (l *Language) N(key string, n int64, args ...any) string {
	form := ".other"
	if n == 1 || n == 0 && l.Tag != "en" { // French counts nothing as one
		form = ".one"
	}
	return l.T(key+form, append([]any{n}, args...)...)
}

// Count is N of an int.
func (l *Language) Count(key string, n int) string { return l.N(key, int64(n)) }
