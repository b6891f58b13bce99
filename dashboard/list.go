package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"intumwa/texts"
)

const (
	rowsOnPage     = 50                    // of an administration list
	messagesOnPage = 25                    // of a message list
	searchFor      = 25 * time.Millisecond // minimum duration of a search that does not fill a page
	rowsAtOnce     = 1000                  // rows per read of a file
	maxQuery       = 200                   // bytes of a parameter
)

// parameters returns the form of a list: the named parameters of the address.
func (v *visit) parameters(names ...string) *form {
	f := v.form()
	if v.c.Request.Method != http.MethodGet {
		return f
	}
	for _, name := range names {
		text := strings.TrimSpace(v.c.Query(name))
		if text = text[:min(len(text), maxQuery)]; text != "" {
			f.values.Set(name, strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD"))
			f.names = append(f.names, name)
		}
	}
	return f
}

// listing is a page of a list and its links.
type listing[T any] struct {
	Rows        []T
	Filtered    bool
	Later       bool   // this is not the first page
	First, Next string // addresses; Next is empty on the last page
	Export      string // address of all results, as a file
}

// list reads the page of a list that the parameter before selects. path is its address; the form has its other
// parameters. With an invalid parameter it reads nothing.
func list[T any](v *visit, path string, most int, read func(before int64, limit int) ([]T, int64, error)) (l listing[T], err error) {
	f, before := v.form(), v.after("before")
	l = listing[T]{Filtered: len(f.names) > 0, Later: before > 0, First: f.address(path), Export: f.address(path + ".csv")}
	if !f.ok() && v.c.Request.Method == http.MethodGet {
		return l, nil
	}
	var next int64
	l.Rows, next, err = fill(before, most, read)
	if next != 0 {
		l.Next = f.address(path, "before", strconv.FormatInt(next, 10))
	}
	return l, err
}

// byID cuts a page of limit rows from rows that were read with one extra, and returns the position after it.
func byID[T any](limit int, id func(*T) int64, rows []T, err error) ([]T, int64, error) {
	if err != nil || len(rows) <= limit {
		return rows, 0, err
	}
	return rows[:limit], id(&rows[limit-1]), nil
}

// firsts are the first entries of a list, and the number of the others.
type firsts[T any] struct {
	List []T
	More int
}

const firstsOnPage = 20

func (f *firsts[T]) add(item T) {
	if len(f.List) == firstsOnPage {
		f.More++
		return
	}
	f.List = append(f.List, item)
}

// address returns the address of a list with the form's values and more as parameters.
func (f *form) address(path string, more ...string) string {
	for _, name := range f.names {
		more = append(more, name, f.Value(name))
	}
	return address(path, more...)
}

// address returns a path with the parameters that are not empty.
func address(path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// after returns the parameter with the position where a list continues; 0 at the beginning.
func (v *visit) after(name string) int64 {
	n, err := strconv.ParseInt(v.c.Query(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// fill reads one page of a list. If few rows match the filter, it searches further back for a limited time, and the
// page then has a link to continue.
func fill[T any](before int64, most int, list func(before int64, limit int) ([]T, int64, error)) (rows []T, next int64, err error) {
	next = before
	for start := time.Now(); ; {
		var more []T
		more, next, err = list(next, most-len(rows))
		rows = append(rows, more...)
		if err != nil || len(rows) == most || next == 0 || time.Since(start) > searchFor {
			return rows, next, err
		}
	}
}

// day parses a field with a date and returns midnight in Bujumbura; empty is the zero time.
func (f *form) day(field string) time.Time {
	value := f.Value(field)
	if value == "" {
		return time.Time{}
	}
	day, err := time.ParseInLocation(time.DateOnly, value, texts.Bujumbura)
	if err != nil || day.Year() < 2000 || day.Year() > 9999 {
		f.refuse(field, "error.date")
		return time.Time{}
	}
	return day
}

// days parses the fields from and to. The day in to is included.
func (f *form) days() (from, to time.Time) {
	from, to = f.day("from"), f.day("to")
	if !to.IsZero() {
		to = to.AddDate(0, 0, 1)
	}
	return from, to
}

const localTime = "2006-01-02T15:04" // format of an input of type datetime-local

// instant parses a field with a day and time in Bujumbura; empty is the zero time.
func (f *form) instant(field, wrong string) time.Time {
	value := f.Value(field)
	if value == "" {
		return time.Time{}
	}
	at, err := time.ParseInLocation(localTime, value, texts.Bujumbura)
	if err != nil { // browsers may write seconds
		at, err = time.ParseInLocation(localTime+":05", value, texts.Bujumbura)
	}
	if err != nil || at.Year() < 2000 || at.Year() > 2200 {
		f.refuse(field, wrong)
	}
	return at
}
