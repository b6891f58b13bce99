package api

import (
	"fmt"
	"html"
	"path/filepath"
	"strings"
	"testing"

	"intumwa/configs/importer"
	answers "intumwa/smppserver/statuses"
)

// TestSMPPPage: the page /docs/smpp has every answer of the SMPP server in both languages, says whether the
// installation has one, and shows configurations for it that Jasmin's and Kannel's readers take.
func TestSMPPPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		installed SMPP
		has, not  string
	}{
		"off":   {SMPP{}, "is off on this installation", "The port is"},
		"TLS":   {SMPP{Port: "3550", TLS: true}, "The port is 3550, with TLS", "is off on"},
		"plain": {SMPP{Port: "3550"}, "use-ssl = false", "with TLS 1.2"},
	} {
		p, err := madePages(Options{TestSender: testSender, SMPP: c.installed}, 500)
		if err != nil {
			t.Fatal(err)
		}
		for language, e := range p.editions {
			var page strings.Builder
			if err := e.others["smpp"].Execute(&page, e.content); err != nil {
				t.Fatal(err)
			}
			text := html.UnescapeString(page.String())
			for _, r := range append(answers.Binds[:len(answers.Binds):len(answers.Binds)], answers.Requests...) {
				if row := fmt.Sprintf("<code>0x%02X</code></td><td>", uint32(r.Status)); !strings.Contains(text, row) ||
					!strings.Contains(text, "<td>"+words{r.EN, r.FR}.of(language)+"</td>") {
					t.Errorf("%s: no row of %v", language, r.Status)
				}
			}
			if language == "en" && (!strings.Contains(text, c.has) || strings.Contains(text, c.not)) {
				t.Errorf("%s: the page has %q: %v", name, c.has, strings.Contains(text, c.has))
			}
			if c.installed.Port != "" && strings.Contains(text, "2776") {
				t.Errorf("%s: a sample has another port", name)
			}
		}
	}
	for sample, read := range map[string]func(string) (*importer.Proposal, error){"kannel.txt": importer.Kannel,
		"jasmin.txt": importer.Jasmin} {
		proposal, err := read(filepath.Join("docs", "samples", sample))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range proposal.Ignored {
			if strings.Contains(fmt.Sprint(line), "not known") {
				t.Errorf("%s: %v", sample, line)
			}
		}
	}
}
