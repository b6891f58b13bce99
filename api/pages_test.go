package api

import (
	"encoding/json"
	"html"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher/setup"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
)

// The page needs no other host, and its assets are served.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Limit: 500})
	for _, language := range editionLanguages {
		t.Run(language, func(t *testing.T) { w.t = t; w.referencePage(t, language) })
	}
	if got := w.do("", "GET", "/docs/page.html", ""); got.status != 404 {
		t.Errorf("the template is served: %d", got.status)
	}
	for name := range assets {
		if got := w.do("", "GET", "/docs/"+name, ""); strings.Contains(got.body, "http://") ||
			strings.Contains(got.body, "https://") {
			t.Errorf("%s speaks of other hosts", name)
		}
	}
}

func (w *world) referencePage(t *testing.T, language string) {
	page := w.do("", "GET", "/docs?lang="+language, "")
	if page.status != 200 || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
		t.Fatalf("%d %v", page.status, page.header)
	}
	if strings.Contains(page.body, "{{.") || strings.Contains(page.body, "<no value>") {
		t.Error("a part of the page was not filled in")
	}
	for _, match := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
		link, err := url.Parse(match[1])
		switch {
		case err != nil:
			t.Errorf("%s: %v", match[1], err)
		case link.Fragment != "" && link.Path == "":
			if !strings.Contains(page.body, `id="`+link.Fragment+`"`) {
				t.Errorf("%s leads nowhere", match[1])
			}
		case link.Host != "":
			if match[1] != "https://www.standardwebhooks.com" {
				t.Errorf("%s is outside", match[1])
			}
		default:
			if got := w.do("", "GET", link.Path, ""); got.status != 200 {
				t.Errorf("%s answers %d", link.Path, got.status)
			}
		}
	}
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("policy %q", policy)
	}
	if strings.Contains(page.body, "style=") || strings.Contains(page.body, "onclick") {
		t.Error("the policy forbids inline code of the page")
	}
}

// In both languages every field has a type and a description, and every endpoint an example.
func TestReferenceIsComplete(t *testing.T) {
	texts := map[string]map[string]string{}
	for _, language := range editionLanguages {
		texts[language] = map[string]string{}
		paths, hooks, err := endpoints(openAPIText, language)
		if err != nil || len(paths) < 20 || len(hooks) != 6 {
			t.Fatalf("%d endpoints, %d events, %v", len(paths), len(hooks), err)
		}
		for _, e := range append(paths, hooks...) {
			texts[language][e.ID] = e.Title + e.Text
			if e.Title == "" || e.Text == "" || e.Answer+e.Request == "" {
				t.Errorf("%s has no title, text or example", e.ID)
			}
			for _, f := range slices.Concat(e.Parameters, e.Body, e.Response) {
				texts[language][e.ID+" "+f.Name] = f.Text
				if f.Text == "" || f.Type == "" || strings.Contains(f.Type, "<nil>") {
					t.Errorf("%s: %s has the type %q and the meaning %q", e.ID, f.Name, f.Type, f.Text)
				}
			}
		}
	}
	for name, english := range texts["en"] {
		if texts["fr"][name] == english && !strings.HasSuffix(name, " segments") {
			t.Errorf("%s is not in French: %s", name, english)
		}
	}
}

// The page explains every failure reason of the gateway and has this installation's values.
func TestPageExplainsFailureReasons(t *testing.T) {
	source, err := os.ReadFile("../messages/submission/submission.go")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"<code>" + messages.ReasonCancelled + "</code>", "<code>FIN</code>", "<code>ENCORE</code>", " 36 ",
		"Webhooks come from 192.0.2.7.", "90 s, 20 min ", " 7 s "}
	for _, reason := range regexp.MustCompile(`Reason\w+ += "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, "<code>"+reason[1]+"</code>")
	}
	for _, event := range append([]string{webhooks.Sent, webhooks.Failed}, webhooks.Askable()...) {
		want = append(want, "<code>"+event+"</code></a>")
	}
	if len(want) != 18 {
		t.Errorf("%q", want)
	}
	p, err := madePages(Options{TestSender: testSender, StopWords: []string{"FIN"}, StartWords: []string{"ENCORE"},
		Validity: 36 * time.Hour, DocsNotice: "Webhooks come from 192.0.2.7.",
		RetryDelays: []time.Duration{90 * time.Second, 20 * time.Minute, 3 * time.Hour}, WebhookTimeout: 7 * time.Second},
		500)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"again 90 s, 20 min and 3 h after a failure. Any 2xx within 7 s is",
		"nouveau 90 s, 20 min et 3 h après un échec. Toute réponse 2xx en 7 s au plus vaut succès"} {
		if !strings.Contains(string(p.openAPIDocument), want) || strings.Contains(string(p.openAPIDocument), "15 min") {
			t.Errorf("the OpenAPI document lacks %q, or has another schedule too", want)
		}
	}
	for language, e := range p.editions {
		var page strings.Builder
		if err := e.page.Execute(&page, e.content); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(strings.ReplaceAll(page.String(), "\u00a0", " "), text) {
				t.Errorf("%s: the page lacks %q", language, text)
			}
		}
	}
}

func TestPageWithAnotherTestSender(t *testing.T) {
	p, err := madePages(Options{TestSender: "ESSAI"}, 500)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(p.openAPIDocument), documentedTestSender) || !json.Valid(p.openAPIDocument) {
		t.Error("the document names the usual test sender, or is no JSON")
	}
	for _, s := range append(p.editions["en"].content.Send, p.editions["en"].content.Verify...) {
		if strings.Contains(s.Text, documentedTestSender) {
			t.Errorf("%s %s names the usual test sender", s.Group, s.Name)
		}
	}
}

// A text belongs to one refusal of a status.
func TestRefusalsAreUnique(t *testing.T) {
	type key struct{ code, text string }
	seen := map[key]bool{}
	word := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for _, r := range refusals {
		if k := (key{r.code, r.text}); seen[k] {
			t.Errorf("%v is there twice", k)
		} else {
			seen[k] = true
		}
		if r.code != "" && !word.MatchString(r.code) {
			t.Errorf("%q is no code", r.code)
		}
		for _, w := range []words{r.cause, r.fix} {
			if w.en == "" || w.fr == "" {
				t.Errorf("%q is not explained in both languages: %q, %q", r.text, w.en, w.fr)
			}
		}
	}
}

// Every refusal of intake has a code and an explanation.
func TestBusinessRulesHaveCodes(t *testing.T) {
	source, err := os.ReadFile("../intake/refusal.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`Reason: "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 15 {
		t.Fatalf("%d reasons", len(found))
	}
	for _, reason := range found {
		if codes[reason[1]] == "" {
			t.Errorf("%s has no code", reason[1])
		}
	}
}

// The quick start on the page works, command by command, for a new user.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	bash := testenv.Tool(t, "bash")
	testenv.Tool(t, "curl")
	w := newWorld(t, worldOptions{}).settle()
	page := w.do("", "GET", "/docs", "").body
	blocks := regexp.MustCompile(`(?s)<pre class="code step"><code>(.*?)</code></pre>`).FindAllStringSubmatch(page, -1)
	if len(blocks) != 5 {
		t.Fatalf("%d steps", len(blocks))
	}
	script, outputs := "", []string{}
	for _, block := range blocks {
		command := html.UnescapeString(block[1])
		command = strings.Replace(command, tokenExample, w.tokens["new"], 1)
		if strings.Contains(command, "CODE=123456") {
			command = strings.Replace(command, "123456", w.code("+25761234500"), 1)
		}
		cmd := exec.Command(bash, "-euc", script+"\n"+command)
		cmd.Env = append(os.Environ(), "no_proxy=*")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s\n%v", command, err)
		}
		outputs = append(outputs, string(out))
		for line := range strings.Lines(command) { // ids that later steps use
			if regexp.MustCompile(`^(export )?[A-Z_]+=`).MatchString(line) {
				script += "\n" + line
			}
		}
	}
	sameJSON(t, outputs[1], testMode("+25761234500", false, 3, 5))
	sameJSON(t, outputs[2], testMode("+25761234500", true, 3, 5))
	if !strings.Contains(outputs[3], `"status":"queued","to":"+25761234500"`) ||
		!strings.Contains(outputs[4], `"message":"Muraho"`) {
		t.Errorf("%s\n%s", outputs[3], outputs[4])
	}
}

func TestSendSamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	p, err := madePages(Options{TestSender: testSender}, 500)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.editions["en"].content.Send {
		t.Run(s.Name, func(t *testing.T) {
			file, args := runnable(t, s, nil)
			cmd := exec.Command(args[0], append(args[1:], file)...)
			cmd.Env = append(os.Environ(), "BASE_URL="+w.server.URL+"/v1", "TOKEN="+w.tokens["live"], "no_proxy=*")
			out, err := cmd.CombinedOutput()
			if err != nil || !anyULID.Match(out) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	if n := w.count(`SELECT count(*) FROM messages WHERE test AND body = 'Urakoze!'`); n == 0 {
		t.Error("no sample sent anything")
	}
}

// runnable writes a sample, followed by the test's code, to a file and returns the command that runs it.
func runnable(t *testing.T, s sample, behind map[string]string) (file string, command []string) {
	t.Helper()
	if s.Name == "java" || s.Name == "cs" || s.Name == "go" { // slow to compile
		testenv.Long(t)
	}
	program := "go"
	if interpreter := map[string]string{"sh": "bash", "php": "php", "js": "node", "py": "python3", "java": "java",
		"cs": "mono"}[s.Name]; interpreter != "" {
		program = testenv.Tool(t, interpreter)
	}
	name := "sample." + s.Name
	if s.Name == "js" && behind == nil {
		name = "sample.mjs" // it has a top-level await
	}
	file = t.TempDir() + "/" + name
	if err := os.WriteFile(file, []byte(s.Text+behind[s.Name]), 0o600); err != nil {
		t.Fatal(err)
	}
	command = []string{program}
	if s.Name == "cs" {
		compiler := testenv.Tool(t, "mcs")
		if out, err := exec.Command(compiler, "-langversion:latest", "-r:System.Net.Http.dll", "-out:"+file+".exe",
			file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		file += ".exe"
	}
	if s.Name == "go" {
		command = append(command, "run")
	}
	return file, command
}

// The page /docs/statuses has every reason of our own with the installation's refund, in both languages; the pages
// have a button that copies each sample, under a policy that allows it.
func TestStatusesPage(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../messages/submission/submission.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := []string{messages.ReasonCancelled}
	for _, found := range regexp.MustCompile(`Reason\w+ += "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		reasons = append(reasons, found[1])
	}
	for _, reason := range reasons {
		if !slices.ContainsFunc(outcomes, func(o outcome) bool { return o.reason == reason && o.status == sms.Failed }) {
			t.Errorf("%s has no row", reason)
		}
	}
	for rule, want := range map[setup.Refund]map[string]string{ // the rule choices 4.6
		setup.RefundUnsubmitted: {"expired": "Returned, unless", "opted_out": "Returned, unless",
			"carrier_closed": "Returned, unless", "cancelled": "Returned.", "no_receipt": "Charged.", "no_answer": "Charged.",
			"ESME_RINVDSTADR": "Charged.", "UNDELIV 001": "Charged."},
		setup.RefundFailed: {"expired": "Returned.", "opted_out": "Returned.", "carrier_closed": "Returned.",
			"cancelled": "Returned.", "no_receipt": "Returned.", "ESME_RINVDSTADR": "Returned."},
		setup.RefundNever: {"expired": "Charged.", "opted_out": "Charged.", "carrier_closed": "Returned, unless",
			"cancelled": "Returned.", "no_receipt": "Charged."},
	} {
		p, err := madePages(Options{TestSender: testSender, Refund: rule}, 500)
		if err != nil {
			t.Fatal(err)
		}
		for language, e := range p.editions {
			var page strings.Builder
			if err := e.others["statuses"].Execute(&page, e.content); err != nil {
				t.Fatal(err)
			}
			for _, row := range outcomeRows(rule, language) {
				if !strings.Contains(html.UnescapeString(page.String()), row.Meaning+"</td><td>"+row.Credits) {
					t.Errorf("%s: no row of %s %s", language, row.Status, row.Reason)
				}
				if begin := want[row.Reason]; language == "en" && !strings.HasPrefix(row.Credits, begin) {
					t.Errorf("rule %d: %s: %q, want %q", rule, row.Reason, row.Credits, begin)
				}
			}
		}
	}
	w := newWorld(t, worldOptions{})
	for language, word := range map[string]string{"en": "What each status means", "fr": "Ce que signifie chaque état"} {
		page := w.do("", "GET", "/docs/statuses?lang="+language, "")
		if page.status != 200 || page.header.Get("Content-Language") != language || !strings.Contains(page.body, word) ||
			strings.Contains(page.body, "{{") {
			t.Errorf("%s: %d %v", language, page.status, page.header)
		}
		reference := w.do("", "GET", "/docs?lang="+language, "")
		if !strings.Contains(reference.body, `<script src="/docs/copy.js">`) ||
			!strings.Contains(reference.header.Get("Content-Security-Policy"), "script-src 'self'") {
			t.Errorf("%s: samples cannot be copied: %v", language, reference.header)
		}
	}
}
