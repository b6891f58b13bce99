package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// group is a group of kannel.conf: its lines up to an empty one.
type group struct {
	name     string
	settings []setting
}

// get returns a setting; the last one counts, as in Kannel.
func (g *group) get(name string) (s setting, given bool) {
	for _, each := range g.settings {
		if each.name == name {
			s, given = each, true
		}
	}
	return s, given
}

const (
	maxIncludes = 100
	maxFile     = 1 << 20
)

// reader reads kannel.conf and what it includes.
type reader struct {
	groups []group
	open   []setting // of the group that has begun
	stack  []string  // files being read
	files  int
}

// readKannel reads the groups of a file.
func readKannel(path string) ([]group, error) {
	r := &reader{}
	if err := r.read(path); err != nil {
		return nil, err
	}
	return r.groups, r.end()
}

func (r *reader) read(path string) error {
	if slices.Contains(r.stack, path) {
		return fmt.Errorf("%s includes itself", path)
	}
	if r.files++; r.files > maxIncludes {
		return fmt.Errorf("%s: more than %d files", path, maxIncludes)
	}
	text, err := readText(path)
	if err != nil {
		return err
	}
	r.stack = append(r.stack, path)
	defer func() { r.stack = r.stack[:len(r.stack)-1] }()
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch name, value, found := strings.Cut(line, "="); {
		case line == "":
			if err := r.end(); err != nil {
				return err
			}
		case line[0] == '#':
		case !found:
			return fmt.Errorf("%s:%d: not a line of kannel.conf: it has no =", path, i+1)
		default:
			s := setting{path, strings.TrimSpace(name), unquote(strings.TrimSpace(value)), i + 1}
			if s.name != "include" {
				r.open = append(r.open, s)
			} else if err := r.include(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// include reads a file, or the files of a directory. A relative path is tried first in the including file's directory.
func (r *reader) include(s setting) error {
	path := s.value
	if beside := filepath.Join(filepath.Dir(s.file), path); !filepath.IsAbs(path) && exists(beside) {
		path = beside
	}
	paths := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", s.file, s.line, err)
		}
		paths = nil
		for _, e := range entries {
			if !e.IsDir() {
				paths = append(paths, filepath.Join(path, e.Name()))
			}
		}
	}
	for _, path := range paths {
		if err := r.read(path); err != nil {
			return fmt.Errorf("%s:%d: %w", s.file, s.line, err)
		}
	}
	return nil
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// end ends a group.
func (r *reader) end() error {
	if len(r.open) == 0 {
		return nil
	}
	g := group{settings: r.open}
	r.open = nil
	name, given := g.get("group")
	if !given {
		return fmt.Errorf("%s:%d: this group has no line group =; an empty line ends a group", g.settings[0].file,
			g.settings[0].line)
	}
	g.name = name.value
	r.groups = append(r.groups, g)
	return nil
}

// unquote returns a value without its quotes; a comment may follow them.
func unquote(value string) string {
	if value == "" || value[0] != '"' {
		return value
	}
	var b strings.Builder
	for i := 1; i < len(value); i++ {
		switch value[i] {
		case '"':
			return b.String()
		case '\\':
			if i++; i == len(value) {
				return b.String()
			}
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

// readText reads a text file of bounded size.
func readText(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() > maxFile {
		return "", fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(strings.ReplaceAll(string(text), "\r\n", "\n"), "\ufeff"), nil
}
