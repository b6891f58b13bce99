package dashboard

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"intumwa/texts"
)

// TestGuideNamesThePages: what the guide to the dashboard puts in quotation marks is written on its pages.
func TestGuideNamesThePages(t *testing.T) {
	all, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range all.Languages {
		name := map[string]string{"fr": "guide.fr.html", "en": "guide.html"}[language.Tag]
		page, err := os.ReadFile("../api/docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, key := range language.Keys() {
			texts = append(texts, strings.ReplaceAll(language.T(key), "\u00a0", " "))
		}
		quoted := regexp.MustCompile(`“([^”]+)”|« ([^»]+) »`).FindAllStringSubmatch(strings.ReplaceAll(string(page), "\u00a0", " "), -1)
		for _, found := range quoted {
			if text := found[1] + found[2]; !slices.Contains(texts, text) && text != "nom" && text != "name" {
				t.Errorf("%s: no page says %q", name, text)
			}
		}
		if len(quoted) < 15 {
			t.Errorf("%s: %d texts", name, len(quoted))
		}
	}
}
