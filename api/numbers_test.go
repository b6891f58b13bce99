package api

import (
	"regexp"
	"strings"
	"testing"

	"intumwa/sms"
	"intumwa/tools/carriersim"
	"intumwa/webhooks"
)

// numberShown finds whatever looks like a number of Burundi on a page.
var numberShown = regexp.MustCompile(`(?:\+257 ?|\b)[67]\d[ .-]?\d\d[ .-]?\d\d[ .-]?\d\d\b`)

// Who tries a number of the documents at home, with the simulated carriers of `make
// run`, sees what the documents say of it: sent, or failed where a failure is shown.
func TestNumbersOfTheDocumentsAreSent(t *testing.T) {
	fates := map[string]string{}
	for _, fate := range carriersim.Fates() {
		fates[fate.Digits] = fate.Ends
	}
	vectors, err := webhooks.TestVectors()
	if err != nil {
		t.Fatal(err)
	}
	shownFailing := map[sms.Number]bool{}
	for _, v := range vectors {
		if v.Event == webhooks.Failed {
			shownFailing[sms.Number(numberShown.FindString(v.Body))] = true
		}
	}
	plan, w := sms.NewPlan(), newWorld(t, worldOptions{})
	texts := map[string]string{"openapi.json": w.do("", "GET", "/v1/openapi.json", "").body, "page.html": w.do("", "GET", "/docs", "").body,
		"page.fr.html": w.do("", "GET", "/docs?lang=fr", "").body}
	for _, name := range []string{"quickstart.txt", "quickstart.fr.txt", "samples/send.sh", "samples/send.php", "samples/send.js", "samples/send.py", "samples/send.go.txt"} {
		text, err := docsFiles.ReadFile("docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	for name, text := range texts {
		text = strings.NewReplacer("&#43;", "+", "&nbsp;", " ").Replace(text)
		shown := numberShown.FindAllString(text, -1)
		found := strings.Count(text, string(sms.SandboxFates()[0].Number)) // which is sent, whatever carriers there are
		for _, each := range shown {
			number, ok := plan.Parse(each)
			if !ok {
				continue // a time of day in Unix seconds, say
			}
			found++
			ends, known := fates[each[len(each)-2:]]
			if shownFailing[number] {
				if ends != "failed" {
					t.Errorf("%s shows %s failing, which becomes %s", name, each, ends)
				}
			} else if known && ends != "sent" {
				t.Errorf("%s shows %s, which becomes %s", name, each, ends)
			}
		}
		if found == 0 {
			t.Errorf("%s shows no number", name)
		}
	}
}
