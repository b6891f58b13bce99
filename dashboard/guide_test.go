package dashboard

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"intumwa/texts"
)

// TestGuideNamesThePages: what the guide to the dashboard and the pages about finance put in quotation marks is written
// on the dashboard's pages.
func TestGuideNamesThePages(t *testing.T) {
	all, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range all.Languages {
		var page []byte
		for _, name := range map[string][]string{"fr": {"../api/docs/guide.fr.html", "../docs/finances.md"},
			"en": {"../api/docs/guide.html", "../docs/finance.md"}}[language.Tag] {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			page = append(page, text...)
		}
		var texts []string
		for _, key := range language.Keys() {
			texts = append(texts, strings.ReplaceAll(language.T(key), "\u00a0", " "))
		}
		quoted := regexp.MustCompile(`“([^”]+)”|« ([^»]+) »`).FindAllStringSubmatch(
			strings.NewReplacer("\u00a0", " ", "\n", " ").Replace(string(page)), -1)
		for _, found := range quoted {
			if text := found[1] + found[2]; !slices.Contains(texts, text) && text != "nom" && text != "name" {
				t.Errorf("%s: no page says %q", language.Tag, text)
			}
		}
		if len(quoted) < 15 {
			t.Errorf("%s: %d texts", language.Tag, len(quoted))
		}
	}
}
