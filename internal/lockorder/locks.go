// Package lockorder finds the order in which transactions lock tables, as lockdep does in Linux. Programs and tests
// that are built with the tag lockorder trace every transaction. This package's test checks what they found.
package lockorder

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Lock is a lock that a statement takes on rows of a table, or an advisory lock.
type Lock struct {
	Name  string
	Waits bool // not SKIP LOCKED, NOWAIT or pg_try_advisory_xact_lock
}

// Locks returns the locks of an SQL text in the order in which PostgreSQL takes them: a subquery before the statement
// around it, and a part of WITH that the main query does not read after it. An INSERT counts only with ON CONFLICT.
// Other rows that it writes are new.
func Locks(sql string) (locks []Lock) {
	var q queries
	text := strings.ToLower(comment.ReplaceAllString(sql, " "))
	text = literal.ReplaceAllStringFunc(text, func(s string) string { return "'" + strings.Map(plain, s) + "'" })
	text = strings.ReplaceAll(space.ReplaceAllString(text, " "), "distinct from", "distinct_from")
	for inner.MatchString(text) { // from inside to outside
		text = inner.ReplaceAllStringFunc(text, func(s string) string {
			q = append(q, query{s, q.locks(s[1 : len(s)-1])})
			return fmt.Sprintf("<%d>", len(q)-1)
		})
	}
	for statement := range strings.SplitSeq(text, ";") {
		locks = append(locks, q.locks(statement)...)
	}
	return locks
}

// query is a text in parentheses. <n> in a text is queries[n].
type (
	query struct {
		text  string
		locks []Lock
	}
	queries []query
)

var (
	comment = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/`)
	literal = regexp.MustCompile(`'(?:[^']|'')*'`)
	space   = regexp.MustCompile(`\s+`)
	inner   = regexp.MustCompile(`\([^()]*\)`)
	nested  = regexp.MustCompile(`<(\d+)>`)

	withPart = regexp.MustCompile(`\b(\w+) as (?:not )?(?:materialized )?<(\d+)>`)
	advisory = regexp.MustCompile(`\bpg_(try_)?advisory_xact_lock(?:_shared)? ?<(\d+)>`)
	hashed   = regexp.MustCompile(`'([^']*)'`)
	changes  = regexp.MustCompile(`(?:\b(for|key|do|on) )?\b(?:update|delete from|lock table) (?:only )?(\w+)`)
	conflict = regexp.MustCompile(`\binsert into (\w+).* on conflict\b`)
	selected = regexp.MustCompile(
		`\bfrom (.*?)(?: where .*?| order by .*?| group by .*?)? for (?:no )?(?:key )?(?:update|share)( of \w+(?:, \w+)*)?( skip locked| nowait)?`)
	joins  = regexp.MustCompile(`(?: (?:left|right|cross|inner|full|natural|outer))* join `)
	source = regexp.MustCompile(`(?:^|, )(?:only |lateral )?(\w+)( ?<\d+>)?(?: (?:as )?(\w+))?`)
)

// partitions has the tables of which rows are named by the table of a partition too.
var partitions = map[string]string{"webhook_undelivered": "webhook_deliveries",
	"webhook_delivered": "webhook_deliveries"}

// plain keeps the letters of a literal, and has a dot for a space: the rest could look like SQL.
func plain(r rune) rune {
	switch {
	case r == ' ':
		return '.'
	case r == '_' || r >= 'a' && r <= 'z':
		return r
	}
	return -1
}

// whole returns a text with the queries in it.
func (q queries) whole(text string) string {
	return nested.ReplaceAllStringFunc(text, func(s string) string { return q.whole(q.of(s[1 : len(s)-1]).text) })
}

func (q queries) of(number string) query {
	n, _ := strconv.Atoi(number)
	return q[n]
}

func (q queries) locks(text string) (locks []Lock) {
	parts := withPart.FindAllStringSubmatch(text, -1)
	rest := withPart.ReplaceAllString(text, "")
	for _, m := range nested.FindAllStringSubmatch(rest, -1) {
		locks = append(locks, q.of(m[1]).locks...)
	}
	take := func(name string, waits bool) {
		if parent, is := partitions[name]; is {
			name = parent
		}
		locks = append(locks, Lock{name, waits})
	}
	for _, m := range advisory.FindAllStringSubmatch(rest, -1) {
		name := "advisory"
		if text := hashed.FindStringSubmatch(q.whole(q.of(m[2]).text)); text != nil {
			name += " " + strings.TrimSpace(strings.ReplaceAll(text[1], ".", " "))
		}
		take(name, m[1] == "")
	}
	for _, m := range changes.FindAllStringSubmatch(rest, -1) {
		if m[1] == "" {
			take(m[2], true)
		}
	}
	for _, m := range conflict.FindAllStringSubmatch(rest, -1) {
		take(m[1], true)
	}
	for _, m := range selected.FindAllStringSubmatch(rest, -1) {
		aliases, tables := []string{}, map[string]string{}
		for _, s := range source.FindAllStringSubmatch(joins.ReplaceAllString(m[1], ", "), -1) {
			if isPart := slices.ContainsFunc(parts, func(p []string) bool { return p[1] == s[1] }); s[2] == "" && !isPart {
				alias := s[3]
				if alias == "" || slices.Contains([]string{"on", "using", "limit"}, alias) {
					alias = s[1]
				}
				aliases, tables[alias] = append(aliases, alias), s[1]
			}
		}
		if m[2] != "" {
			aliases = strings.Split(strings.TrimPrefix(m[2], " of "), ", ")
		}
		for _, alias := range aliases {
			if tables[alias] != "" {
				take(tables[alias], m[3] == "")
			}
		}
	}
	// The main query pulls the parts that it reads; the others run after it.
	read := q.whole(rest)
	var late []Lock
	for _, p := range slices.Backward(parts) {
		one := q.of(p[2])
		if regexp.MustCompile(`\b` + p[1] + `\b`).MatchString(read) {
			read += q.whole(one.text)
			locks = append(slices.Clone(one.locks), locks...)
		} else {
			late = append(slices.Clone(one.locks), late...)
		}
	}
	return append(locks, late...)
}
