package api

import (
	"html"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"intumwa/internal/testenv"
	"intumwa/throttle"
)

// The page is whole without any other host, and its assets are there.
func TestReferencePage(t *testing.T) {
	w := newWorld(t, worldOptions{Limit: 500})
	page := w.do("", "GET", "/docs", "")
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
		t.Error("the policy forbids what the page has inline")
	}
	if got := w.do("", "GET", "/docs/page.html", ""); got.status != 404 {
		t.Errorf("the template is served: %d", got.status)
	}
	for name := range assets {
		if got := w.do("", "GET", "/docs/"+name, ""); strings.Contains(got.body, "http://") || strings.Contains(got.body, "https://") {
			t.Errorf("%s speaks of other hosts", name)
		}
	}
}

func TestPageWithAnotherTestSender(t *testing.T) {
	p, err := newPages(Options{TestSender: "ESSAI"}, 500)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(p.openAPIDocument), usualTestSender) {
		t.Error("the document names the usual test sender")
	}
	for _, s := range append(p.content.Send, p.content.Verify...) {
		if strings.Contains(s.Text, usualTestSender) {
			t.Errorf("%s %s names the usual test sender", s.Group, s.Name)
		}
	}
}

// The catalogue has every text of the document, and no other.
func TestCatalogueIsComplete(t *testing.T) {
	blank := strings.NewReplacer(" N ", " 0 ", ".N.", ".0.", "#N", "#0", ".K ", ".code ", "(K)", "(RW)")
	listed := map[string]bool{}
	for _, e := range catalogue {
		text := shape(blank.Replace(e.Text))
		if listed[text] {
			t.Errorf("%q stands there twice", e.Text)
		}
		listed[text] = true
	}
	used := map[string]bool{"Method not allowed.": true}
	note := func(text string) {
		text = shape(strings.Replace(text, "credit.", "credits.", 1))
		used[text] = true
		if !listed[text] {
			t.Errorf("%q is not in the catalogue", text)
		}
	}
	for _, path := range document().Paths.Map() {
		for _, operation := range path.Operations() {
			for status, response := range operation.Responses.Map() {
				if status[0] == '2' {
					continue
				}
				for _, example := range response.Value.Content.Get("application/json").Examples {
					body, _ := example.Value.Value.(map[string]any)
					note(body["message"].(string))
					errors, _ := body["errors"].(map[string]any)
					for _, texts := range errors {
						for _, text := range texts.([]any) {
							note(text.(string))
						}
					}
				}
			}
		}
	}
	for text := range listed {
		if !used[text] {
			t.Errorf("%q is in the catalogue and not in the document", text)
		}
	}
}

// The quick start, command by command as it stands on the page, for a new user.
func TestQuickStart(t *testing.T) {
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
		for line := range strings.Lines(command) { // what later steps go on with
			if regexp.MustCompile(`^(export )?[A-Z_]+=`).MatchString(line) {
				script += "\n" + line
			}
		}
	}
	sameJSON(t, outputs[1], testMode("+25761234500", false, 3, 5))
	sameJSON(t, outputs[2], testMode("+25761234500", true, 3, 5))
	if !strings.Contains(outputs[3], `"status":"queued","to":"+25761234500"`) || !strings.Contains(outputs[4], `"message":"Muraho"`) {
		t.Errorf("%s\n%s", outputs[3], outputs[4])
	}
}

func TestSendSamples(t *testing.T) {
	w := newWorld(t, worldOptions{}).settle()
	p, err := newPages(Options{TestSender: testSender}, 500)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.content.Send {
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

// runnable writes a sample, with what a test puts behind it, to a file, and
// answers with what to run it.
func runnable(t *testing.T, s sample, behind map[string]string) (file string, command []string) {
	t.Helper()
	program := "go"
	if interpreter := map[string]string{"sh": "bash", "php": "php", "js": "node", "py": "python3"}[s.Name]; interpreter != "" {
		program = testenv.Tool(t, interpreter)
	}
	name := "sample." + s.Name
	if s.Name == "js" && behind == nil {
		name = "sample.mjs" // it awaits at its top
	}
	file = t.TempDir() + "/" + name
	if err := os.WriteFile(file, []byte(s.Text+behind[s.Name]), 0o600); err != nil {
		t.Fatal(err)
	}
	command = []string{program}
	if s.Name == "go" {
		command = append(command, "run")
	}
	return file, command
}

func TestLimitShown(t *testing.T) {
	p, err := newPages(Options{TestSender: testSender}, throttle.New(nil, throttle.Options{}).Limit())
	if err != nil || p.content.RateLimit != 500 {
		t.Errorf("%d, %v", p.content.RateLimit, err)
	}
}
