package api

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGuides: each section of the guide names as many pages, buttons and columns in French as in English.
func TestGuides(t *testing.T) {
	names := func(file string, quoted *regexp.Regexp) (counts []int) {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range strings.Split(string(page), "<section")[1:] {
			counts = append(counts, len(quoted.FindAllString(section, -1)))
		}
		return counts
	}
	english := names("docs/guide.html", regexp.MustCompile(`“[^”]*”`))
	french := names("docs/guide.fr.html", regexp.MustCompile(`«[^»]*»`))
	if len(english) < 10 || !slices.Equal(english, french) {
		t.Errorf("names in quotation marks by section: %v in English, %v in French", english, french)
	}
}
