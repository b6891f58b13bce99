package web

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"intumwa/texts"
)

const (
	RowsOnPage     = 50                    // of an administration list
	MessagesOnPage = 25                    // of a message list
	searchFor      = 25 * time.Millisecond // minimum duration of a search that does not fill a page
	RowsAtOnce     = 1000                  // rows per read of a file
	maxQuery       = 200                   // bytes of a parameter
)

// Parameters returns the form of a list: the named parameters of the address.
func (v *Visit) Parameters(names ...string) *Form {
	f := v.Form()
	if v.C.Request.Method != http.MethodGet {
		return f
	}
	for _, name := range names {
		text := strings.TrimSpace(v.C.Query(name))
		if text = text[:min(len(text), maxQuery)]; text != "" {
			f.Values.Set(name, strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\uFFFD"), "\uFFFD"))
			f.names = append(f.names, name)
		}
	}
	return f
}

// Listing is a page of a list and its links.
type Listing[T any] struct {
	Rows        []T
	Filtered    bool
	Later       bool   // this is not the first page
	First, Next string // addresses; Next is empty on the last page
	Export      string // address of all results, as a file
}

// List reads the page of a list that the parameter before selects. path is its address; the form has its other
// parameters. With an invalid parameter it reads nothing.
func List[T any](v *Visit, path string, most int, read func(before int64, limit int) ([]T, int64, error)) (
	l Listing[T], err error) {
	f, before := v.Form(), v.After("before")
	l = Listing[T]{Filtered: len(f.names) > 0, Later: before > 0, First: f.Address(path), Export: f.Address(path + ".csv")}
	if !f.OK() && v.C.Request.Method == http.MethodGet {
		return l, nil
	}
	var next int64
	l.Rows, next, err = fill(before, most, read)
	if next != 0 {
		l.Next = f.Address(path, "before", strconv.FormatInt(next, 10))
	}
	return l, err
}

// ByID cuts a page of limit rows from rows that were read with one extra, and returns the position after it.
func ByID[T any](limit int, id func(*T) int64, rows []T, err error) ([]T, int64, error) {
	if err != nil || len(rows) <= limit {
		return rows, 0, err
	}
	return rows[:limit], id(&rows[limit-1]), nil
}

// Firsts are the first entries of a list, and the number of the others.
type Firsts[T any] struct {
	List []T
	More int
}

// FirstsOnPage is the length of [Firsts].
const FirstsOnPage = 20

// Add adds an entry, or counts it.
func (f *Firsts[T]) Add(item T) {
	if len(f.List) == FirstsOnPage {
		f.More++
		return
	}
	f.List = append(f.List, item)
}

// Address returns the address of a list with the form's values and more as parameters.
func (f *Form) Address(path string, more ...string) string {
	for _, name := range f.names {
		more = append(more, name, f.Value(name))
	}
	return Address(path, more...)
}

// Address returns a path with the parameters that are not empty.
func Address(path string, pairs ...string) string {
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

// After returns the parameter with the position where a list continues; 0 at the beginning.
func (v *Visit) After(name string) int64 {
	n, err := strconv.ParseInt(v.C.Query(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// fill reads one page of a list. If few rows match the filter, it searches further back for a limited time, and the
// page then has a link to continue.
func fill[T any](before int64, most int, list func(before int64, limit int) ([]T, int64, error)) (rows []T, next int64,
	err error) {
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

// Day parses a field with a date and returns midnight in Bujumbura; empty is the zero time.
func (f *Form) Day(field string) time.Time {
	value := f.Value(field)
	if value == "" {
		return time.Time{}
	}
	day, err := time.ParseInLocation(time.DateOnly, value, texts.Bujumbura)
	if err != nil || day.Year() < 2000 || day.Year() > 9999 {
		f.Refuse(field, "error.date")
		return time.Time{}
	}
	return day
}

// Days parses the fields from and to. The day in to is included.
func (f *Form) Days() (from, to time.Time) {
	from, to = f.Day("from"), f.Day("to")
	if !to.IsZero() {
		to = to.AddDate(0, 0, 1)
	}
	return from, to
}

// LocalTime is for fields with a day and time.
const LocalTime = "2006-01-02T15:04" // format of an input of type datetime-local

// Instant parses a field with a day and time in Bujumbura; empty is the zero time.
func (f *Form) Instant(field, wrong string) time.Time {
	value := f.Value(field)
	if value == "" {
		return time.Time{}
	}
	at, err := time.ParseInLocation(LocalTime, value, texts.Bujumbura)
	if err != nil { // browsers may write seconds
		at, err = time.ParseInLocation(LocalTime+":05", value, texts.Bujumbura)
	}
	if err != nil || at.Year() < 2000 || at.Year() > 2200 {
		f.Refuse(field, wrong)
	}
	return at
}

// CompanyPath returns the address of a company's page in the administration.
func CompanyPath(id int64) string { return "/admin/companies/" + strconv.FormatInt(id, 10) }
