package deployments

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// anchors returns the anchors of a page's headings.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all["#"+strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

// TestDocs: every link in the manual leads to an existing page and heading.
func TestDocs(t *testing.T) {
	pages := 0
	docs := os.DirFS("../docs")
	err := fs.WalkDir(docs, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		pages++
		page, err := fs.ReadFile(docs, path)
		if err != nil {
			return err
		}
		for _, found := range link.FindAllStringSubmatch(string(page), -1) {
			target, err := os.ReadFile(filepath.Join("../docs", filepath.Dir(path), found[1]))
			if err != nil {
				t.Errorf("%s leads to %s: %v", path, found[1], err)
			} else if found[2] != "" && !anchors(string(target))[found[2]] {
				t.Errorf("%s leads to %s%s, which has no such heading", path, found[1], found[2])
			}
		}
		return nil
	})
	if err != nil || pages < 30 {
		t.Errorf("%d pages, %v", pages, err)
	}
}

// restartCondition is the only condition for restarting a dispatcher by hand. It stands in one place, restartPlace, to
// which every page that advises a restart leads.
const (
	restartPlace     = "../docs/runbooks/README.md"
	restartCondition = "Restart a dispatcher only while `intumwa admin links` shows `overdue` 0 for every link: " +
		"a submit_sm without an answer may be sent twice."
)

var (
	restartAdvice = regexp.MustCompile(`(?i)\brestart(?:ing)? (?:the|one|a|each) (?:dispatchers?|process)`)
	safeRestart   = regexp.MustCompile(`(?i)restart[^.]*\bsafe\b`)
	unitCommand   = regexp.MustCompile(`systemctl ([a-z-]+)( --now| --all)? '?(intumwa[@*a-z]*)`)
)

// TestAdvice: pages that restart a dispatcher lead to the condition, alerts restart nothing, and commands about units
// work with one unit or one per role.
func TestAdvice(t *testing.T) {
	texts := map[string]string{}
	for name, rule := range alerts(t) {
		texts[name] = text(at(rule, "annotations", "summary")) + " " + text(at(rule, "annotations", "description"))
	}
	for _, page := range append(files(t, "../docs/*.md"), files(t, "../docs/runbooks/*.md")...) {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(raw)
	}
	advised := 0
	for name, raw := range texts {
		text := strings.Join(strings.Fields(raw), " ")
		if name != restartPlace && strings.Contains(text, restartCondition) {
			t.Errorf("%s repeats the condition of %s", name, restartPlace)
		}
		if found := restartAdvice.FindString(text); found != "" {
			advised++
			if name == restartPlace && !strings.Contains(text, restartCondition) || name != restartPlace &&
				!strings.Contains(raw, "README.md#restarting-a-dispatcher") {
				t.Errorf("%s has %q and does not lead to the condition: %s", name, found, restartCondition)
			}
		}
		if found := safeRestart.FindString(text); found != "" {
			t.Errorf("%s: %q", name, found)
		}
		for _, found := range unitCommand.FindAllStringSubmatch(text, -1) {
			install := strings.HasSuffix(name, "/install.md") || strings.HasSuffix(name, "/machines.md") // they set up both
			switch verb, all, unit := found[1], found[2] == " --all", found[3]; {
			case install:
			case unit == "intumwa":
				t.Errorf("%s: %q is for one of the two set-ups", name, found[0])
			case unit == "intumwa*" && verb == "start" && !all:
				t.Errorf("%s: %q starts nothing: a pattern matches what runs already", name, found[0])
			}
		}
		if strings.Contains(text, "EnvironmentFile=/") {
			t.Errorf("%s: the file of EnvironmentFile= need not exist; the units have EnvironmentFile=-", name)
		}
	}
	if advised < 5 {
		t.Errorf("%d restarts are advised; the test reads them wrongly", advised)
	}
}

// provedBy matches a test in docs/security.md: `package.TestX`.
var provedBy = regexp.MustCompile("`([a-z/]+)\\.((?:Test|Fuzz)[A-Za-z0-9_]+)`")

// TestSecurityPage: every promise names existing tests.
func TestSecurityPage(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, promises, found := strings.Cut(string(page), "## What is guaranteed")
	promises, _, ends := strings.Cut(promises, "\n## ")
	if !found || !ends {
		t.Fatal("the page has no section of guarantees")
	}
	rows := 0
	for line := range strings.Lines(promises) {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		rows++
		tests := line[strings.LastIndex(line, ": ")+1:]
		named := provedBy.FindAllStringSubmatch(tests, -1)
		if rest := provedBy.ReplaceAllString(tests, ""); len(named) == 0 || strings.Trim(rest, ", \n") != "" {
			t.Errorf("not a list of tests: %s", tests)
		}
		for _, test := range named {
			declares(t, test[1], test[2])
		}
	}
	if rows < 30 {
		t.Errorf("%d promises", rows)
	}
}

// destructive matches commands that remove a server's data.
var destructive = regexp.MustCompile(`(?m)^ *(?:rm -r|mv (?:-T )?/var/lib/postgresql)`)

// TestDestructiveBlocks: a block of commands that removes a server's data is for one machine, which the paragraph
// before names.
func TestDestructiveBlocks(t *testing.T) {
	found := 0
	for _, page := range append(files(t, "../docs/*.md"), files(t, "../docs/runbooks/*.md")...) {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		pieces := strings.Split(string(raw), "```") // text and blocks in turn
		for i := 1; i < len(pieces); i += 2 {
			commands := pieces[i]
			if !destructive.MatchString(commands) {
				continue
			}
			found++
			paragraphs := strings.Split(strings.TrimSpace(pieces[i-1]), "\n\n")
			before := strings.Join(strings.Fields(paragraphs[len(paragraphs)-1]), " ")
			if regexp.MustCompile(`# on (?:the |[A-Z])`).MatchString(commands) {
				t.Errorf("%s: one block for several machines:\n%s", page, commands)
			}
			if !regexp.MustCompile(`\bOn (?:STANDBY|the old primary|each other node)\b`).MatchString(before) {
				t.Errorf("%s: no machine is named before:\n%s", page, commands)
			}
		}
	}
	if found < 3 {
		t.Errorf("%d blocks were found", found)
	}
}

// TestOneWord: pages and alerts say API key; token is for code, commands and JSON.
func TestOneWord(t *testing.T) {
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	texts := map[string]string{}
	for name, rule := range alerts(t) {
		texts[name] = text(at(rule, "annotations", "summary")) + " " + text(at(rule, "annotations", "description"))
	}
	for _, pattern := range []string{"../README.md", "../docs/*.md", "../docs/runbooks/*.md", "../docs/rules/*.md"} {
		for _, page := range files(t, pattern) {
			if base := filepath.Base(page); base == "events.md" || base == "layout.md" { // the log's texts; packages
				continue
			}
			raw, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			texts[page] = string(raw)
		}
	}
	for name, text := range texts {
		if found := regexp.MustCompile(`(?i)[^\n]*\btokens?\b[^\n]*`).FindString(
			code.ReplaceAllString(text, "")); found != "" {
			t.Errorf("%s says token to people: %s", name, found)
		}
	}
}
