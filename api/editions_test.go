package api

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The reference comes in the language of the address or of the browser.
func TestReferenceInLanguages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{})
	for _, c := range []struct{ path, accept, want string }{
		{"/docs", "", "en"}, {"/docs", "fr", "fr"}, {"/docs", "fr-BI,fr;q=0.9,en;q=0.8", "fr"},
		{"/docs", "en;q=0.8,FR;q=0.9", "fr"},
		{"/docs", "rn,sw;q=0.9,fr;q=0.5,en;q=0.4", "fr"}, {"/docs", "de", "en"}, {"/docs", "*", "en"},
		{"/docs", "fr;q=0", "en"},
		{"/docs", "fr;q=x,en;q=0.1", "en"}, {"/docs", ";;,,=", "en"},
		{"/docs?lang=fr", "en", "fr"}, {"/docs?lang=en", "fr", "en"}, {"/docs?lang=xx", "fr", "fr"},
	} {
		var headers []string
		if c.accept != "" {
			headers = []string{"Accept-Language", c.accept}
		}
		got := w.do("", "GET", c.path, "", headers...)
		if got.status != 200 || got.header.Get("Content-Language") != c.want ||
			!strings.Contains(got.body, `<html lang="`+c.want+`"`) ||
			got.header.Get("Vary") != "Accept-Language" {
			t.Errorf("%+v: %d %q", c, got.status, got.header.Get("Content-Language"))
		}
	}
	french := w.do("", "GET", "/docs?lang=fr", "").body
	for _, want := range []string{"Prise en main", "Créez une clé d’API", "Unauthenticated."} {
		if !strings.Contains(french, want) {
			t.Errorf("the French page lacks %q", want)
		}
	}
}

// The reference links to the dashboard where one is configured.
func TestReferenceLinksToTheDashboard(t *testing.T) {
	const address = `href="https://panel.example.com"`
	for url, want := range map[string]bool{"https://panel.example.com": true, "": false} {
		p, err := madePages(Options{TestSender: testSender, DashboardURL: url}, 500)
		if err != nil {
			t.Fatal(err)
		}
		for language, e := range p.editions {
			var page strings.Builder
			if err := e.page.Execute(&page, e.content); err != nil || strings.Contains(page.String(), address) != want {
				t.Errorf("%q, %s: a link is %v, %v", url, language, !want, err)
			}
		}
	}
}

// Both editions have the same sections, tables, lists and code.
func TestEditionsAreAlike(t *testing.T) {
	skeleton := func(name string) (marks, code []string) {
		text, err := docsFiles.ReadFile("docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		page := strings.ReplaceAll(string(text), "{{nom}}", "{{name}}")
		marks = regexp.MustCompile(
			`</?(?:section|h[1-6]|p|ul|ol|li|table|tr|td|th|pre|dl|dt|dd|text|path|rect)\b|\bid="[^"]*"|\{\{[^}]*\}\}|href="[#/][^"?]*"`).FindAllString(page, -1)
		for _, match := range regexp.MustCompile(`(?s)<code>(.*?)</code>`).FindAllStringSubmatch(page, -1) {
			code = append(code, strings.NewReplacer("caractères ASCII visibles", "visible ASCII characters", "Celui-ci échoue",
				"This one fails", "nom", "name", "langue", "language", "groupe", "group").Replace(match[1]))
		}
		return marks, code
	}
	for _, name := range append([]string{"page"}, otherPages...) {
		alike(t, name, skeleton)
	}
}

func alike(t *testing.T, name string, skeleton func(string) (marks, code []string)) {
	t.Helper()
	english, codeEnglish := skeleton(name + ".html")
	french, codeFrench := skeleton(name + ".fr.html")
	for i := range min(len(english), len(french)) {
		if english[i] != french[i] {
			t.Fatalf("%s: mark %d is %s in English and %s in French; before it %v", name, i, english[i], french[i],
				english[max(0, i-5):i])
		}
	}
	slices.Sort(codeEnglish)
	slices.Sort(codeFrench)
	if len(english) != len(french) || !slices.Equal(codeEnglish, codeFrench) {
		t.Errorf("%s: %d marks and %d, %d pieces of code and %d", name, len(english), len(french), len(codeEnglish),
			len(codeFrench))
	}
	p, err := madePages(Options{TestSender: testSender}, 500)
	if err != nil {
		t.Fatal(err)
	}
	one, other := p.steps("en", "x"), p.steps("fr", "x")
	if len(one) != len(other) {
		t.Fatalf("%d steps and %d", len(one), len(other))
	}
	for i := range one {
		if one[i].Command != other[i].Command || one[i].Title == other[i].Title || one[i].Text == other[i].Text {
			t.Errorf("step %d: %+v, %+v", i+1, one[i], other[i])
		}
	}
}
