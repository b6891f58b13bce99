package deployments

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// Each expression begins with plain text, which makes it fast.
var (
	ruleHeading = regexp.MustCompile(`(?m)^#{2,4} +(\S+)`)
	ruleNumber  = regexp.MustCompile(`^\d+(\.\d+)*$`)
	// citation is `rule api 7.2`, or `rule api 2.2, 4.3`.
	citation = regexp.MustCompile(`rule (api|choices|carriers)\b( \d+(?:\.\d+)*(?:, \d+(?:\.\d+)*)*)?`)
	// broken is a citation over two lines, which grep does not find.
	broken = regexp.MustCompile(
		`rule(?: (?:api|choices|carriers))?[ \t]*\n[ \t]*(?://|#|--|\*)?[ \t]*(?:(?:api|choices|carriers) )?\d+\.\d`)
	// sourced matches where a test names its rules: the whole text is citations.
	sourced = []*regexp.Regexp{regexp.MustCompile(`source: "((?:[^"\\]|\\.)*)"`), regexp.MustCompile(`// Source: (.*)`)}
	source  = regexp.MustCompile(
		`^rule (api|choices|carriers) \d+(\.\d+)*(, \d+(\.\d+)*)*(; rule (api|choices|carriers) \d+(\.\d+)*(, ` +
			`\d+(\.\d+)*)*)*\.?$`)
	// unopenable matches pages outside the repository, and undefined abbreviations.
	unopenable = []*regexp.Regexp{
		regexp.MustCompile(`ontract,? (section )?\d`), regexp.MustCompile(`decisions[:,] `),
		regexp.MustCompile(`interface\.md`),
		regexp.MustCompile(`go-smpp [CS]\d`), regexp.MustCompile(`// [SP]\d+[:,]`), regexp.MustCompile(`promise P\d`),
		regexp.MustCompile(`section 0\.\d`), regexp.MustCompile(`ource: "?[A-H][ .]\d`), regexp.MustCompile(`ssue \d+\.\d`),
	}
)

// TestCitations: every citation has a heading in docs/rules, and nothing outside the
// repository is cited.
func TestCitations(t *testing.T) {
	tree, cited := os.DirFS(".."), 0
	rules := map[string]bool{} // "api 7.2"
	for _, page := range []string{"api", "choices", "carriers"} {
		text, err := fs.ReadFile(tree, path.Join("docs/rules", page+".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, heading := range ruleHeading.FindAllStringSubmatch(string(text), -1) {
			name := page + " " + heading[1]
			if !ruleNumber.MatchString(heading[1]) || rules[name] {
				t.Errorf("docs/rules: the heading %q has no number, or that of another", heading[0])
			}
			rules[name] = true
		}
	}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() {
			// Of the hidden folders, only those of CI belong to the repository.
			if hidden := base[0] == '.' && name != "." && base != ".ci" && base != ".github"; hidden || base == "bin" ||
				base == "node_modules" || base == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || name == "deployments/citations_test.go" {
			return nil
		}
		raw, err := fs.ReadFile(tree, name)
		if err != nil || bytes.IndexByte(raw, 0) >= 0 { // not text
			return err
		}
		text := string(raw)
		for _, match := range citation.FindAllStringSubmatch(text, -1) {
			if match[2] == "" {
				t.Errorf("%s: no number: %s", name, match[0])
			}
			for number := range strings.SplitSeq(strings.TrimSpace(match[2]), ", ") {
				if cited++; number != "" && !rules[match[1]+" "+number] {
					t.Errorf("%s: no such heading: rule %s %s", name, match[1], number)
				}
			}
		}
		for _, match := range broken.FindAllString(text, -1) {
			t.Errorf("%s: a citation over two lines: %s", name, match)
		}
		for _, form := range unopenable {
			for _, match := range form.FindAllString(text, -1) {
				t.Errorf("%s: cannot be opened: %s", name, match)
			}
		}
		for _, form := range sourced {
			for _, match := range form.FindAllStringSubmatch(text, -1) {
				if strings.HasSuffix(name, "_test.go") && !source.MatchString(match[1]) {
					t.Errorf("%s: not a list of rules: %s", name, match[1])
				}
			}
		}
		return nil
	})
	if err != nil || cited < 200 {
		t.Errorf("%d citations were found, %v", cited, err)
	}
}
