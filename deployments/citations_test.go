package deployments

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const rulesFolder = "docs/rules"

// The expressions begin with plain text: that is what makes them quick.
var (
	ruleHeading = regexp.MustCompile(`(?m)^#{2,4} +(\S+)`)
	ruleNumber  = regexp.MustCompile(`^\d+(\.\d+)*$`)
	// citation is `rule api 7.2`, or `rule api 2.2, 4.3`.
	citation = regexp.MustCompile(`rule (api|choices|carriers)\b( \d+(?:\.\d+)*(?:, \d+(?:\.\d+)*)*)?`)
	// broken is a citation over two lines: grep does not find it.
	broken = regexp.MustCompile(`rule(?: (?:api|choices|carriers))?[ \t]*\n[ \t]*(?://|#|--|\*)?[ \t]*(?:(?:api|choices|carriers) )?\d+\.\d`)
	// sourced is where a test says which rule it plays: all of it is citations.
	sourced = []*regexp.Regexp{regexp.MustCompile(`source: "((?:[^"\\]|\\.)*)"`), regexp.MustCompile(`// Source: (.*)`)}
	source  = regexp.MustCompile(`^rule (api|choices|carriers) \d+(\.\d+)*(, \d+(\.\d+)*)*(; rule (api|choices|carriers) \d+(\.\d+)*(, \d+(\.\d+)*)*)*\.?$`)
	// unopenable are pages that are not in the repository, as they were once
	// cited, and letters that only their readers could decode.
	unopenable = []*regexp.Regexp{
		regexp.MustCompile(`ontract,? (section )?\d`), regexp.MustCompile(`decisions(\.md|[:,] )`), regexp.MustCompile(`interface\.md`),
		regexp.MustCompile(`go-smpp [CS]\d`), regexp.MustCompile(`// [SP]\d+[:,]`), regexp.MustCompile(`promise P\d`),
		regexp.MustCompile(`section 0\.\d`), regexp.MustCompile(`ource: "?[A-H][ .]\d`), regexp.MustCompile(`ssue \d+\.\d`),
	}
)

// TestCitations: every citation leads to a heading of docs/rules, and nothing is
// cited that cannot be opened.
func TestCitations(t *testing.T) {
	found, cited := checkCitations(os.DirFS(".."))
	for _, sentence := range found {
		t.Error(sentence)
	}
	if cited < 200 {
		t.Errorf("only %d citations were found", cited)
	}
}

// checkCitations returns a sentence for each number that stands twice, each
// citation that leads nowhere and each source that cannot be opened, and how
// many citations there are.
func checkCitations(tree fs.FS) (found []string, cited int) {
	rules := map[string]bool{} // "api 7.2"
	for _, page := range []string{"api", "choices", "carriers"} {
		text, err := fs.ReadFile(tree, path.Join(rulesFolder, page+".md"))
		if err != nil {
			return []string{err.Error()}, 0
		}
		for _, heading := range ruleHeading.FindAllStringSubmatch(string(text), -1) {
			switch name := page + " " + heading[1]; {
			case !ruleNumber.MatchString(heading[1]):
				found = append(found, rulesFolder+": a heading of "+page+" has no number: "+heading[0])
			case rules[name]:
				found = append(found, rulesFolder+": "+name+" stands twice")
			default:
				rules[name] = true
			}
		}
	}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() {
			// Of the folders that begin with a dot only those of CI are the repository's.
			if hidden := base[0] == '.' && name != "." && base != ".ci" && base != ".github"; hidden || base == "bin" || base == "node_modules" || base == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || name == "deployments/citations_test.go" {
			return nil
		}
		octets, err := fs.ReadFile(tree, name)
		if err != nil || bytes.IndexByte(octets, 0) >= 0 { // no text
			return err
		}
		text := string(octets)
		for _, match := range citation.FindAllStringSubmatch(text, -1) {
			if match[2] == "" {
				found = append(found, name+": no number: "+match[0])
			}
			for number := range strings.SplitSeq(strings.TrimSpace(match[2]), ", ") {
				if cited++; number != "" && !rules[match[1]+" "+number] {
					found = append(found, name+": no such heading: rule "+match[1]+" "+number)
				}
			}
		}
		for _, match := range broken.FindAllString(text, -1) {
			found = append(found, name+": a citation over two lines: "+match)
		}
		for _, form := range unopenable {
			for _, match := range form.FindAllString(text, -1) {
				found = append(found, name+": cannot be opened: "+match)
			}
		}
		if strings.HasSuffix(name, "_test.go") {
			found = append(found, checkSources(name, text)...)
		}
		return nil
	})
	if err != nil {
		found = append(found, err.Error())
	}
	return found, cited
}

func checkSources(name, text string) (found []string) {
	for _, form := range sourced {
		for _, match := range form.FindAllStringSubmatch(text, -1) {
			if !source.MatchString(match[1]) {
				found = append(found, name+": not a list of rules: "+match[1])
			}
		}
	}
	return found
}

// TestCitationsAreChecked: each mistake is found, and what is right is not.
func TestCitationsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		"// rule api 7.2, 8":                           "",
		"// (rule carriers 1.1; rule api 8).":          "",
		"the rule carries on":                          "",
		"// Source: rule api 7.2; rule carriers 1.1.":  "",
		`{source: "rule carriers 1.1, 1.2"}`:           "",
		"// rule api 7.3":                              "no such heading: rule api 7.3",
		"// rule api 7.2, 9":                           "no such heading: rule api 9",
		"// rule carriers 7.2":                         "no such heading: rule carriers 7.2",
		"// as the rule api has it":                    "no number: rule api",
		"// as rule\n// api 7.2 has it":                "a citation over two lines: rule\n// api 7.2",
		"// as rule api\n\t// 7.2 has it":              "a citation over two lines: rule api\n\t// 7.2",
		"// con" + "tract 7.2":                         "cannot be opened: ontract 7",
		"// (decis" + "ions.md)":                       "cannot be opened: decisions.md",
		"// (decis" + "ions, Pace)":                    "cannot be opened: decisions, ",
		"// S" + "3: a peer":                           "cannot be opened: // S3:",
		`{source: "B 1"}`:                              "not a list of rules: B 1",
		`{source: "rule api 7.2 and A.4"}`:             "not a list of rules: rule api 7.2 and A.4",
		"// Source: the letter of rule api 7.2.":       "not a list of rules: the letter of rule api 7.2.",
		"// Source: iss" + "ue 4.7, rule carriers 1.1": "cannot be opened: ssue 4.7",
	} {
		page := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
		tree := fstest.MapFS{
			"docs/rules/api.md":      page("# A\n\n## 7 Errors\n\n### 7.2 400\n\n## 8 Limits\n"),
			"docs/rules/choices.md":  page("# C\n"),
			"docs/rules/carriers.md": page("# H\n\n## 1 Ids\n### 1.1 Hex\n### 1.2 Zeros\n"),
			"room/x_test.go":         page(text + "\n"),
		}
		found, _ := checkCitations(tree)
		if want == "" && len(found) > 0 || want != "" && !slices.Contains(found, "room/x_test.go: "+want) {
			t.Errorf("%q: %q, want %q", text, found, want)
		}
	}
	tree := fstest.MapFS{}
	for name, text := range map[string]string{"api": "## 1 A\n## 1 B\n## Other\n", "choices": "", "carriers": ""} {
		tree["docs/rules/"+name+".md"] = &fstest.MapFile{Data: []byte(text)}
	}
	want := []string{"docs/rules: api 1 stands twice", "docs/rules: a heading of api has no number: ## Other"}
	if found, _ := checkCitations(tree); !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}
