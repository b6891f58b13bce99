package dashboard

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	messagesOnPage = 25                    // rows of a list of messages
	searchFor      = 25 * time.Millisecond // the least time of a search that does not fill a page
	rowsAtOnce     = 1000                  // rows of a file that are read at a time
	maxQuery       = 200                   // octets of a parameter
)

// parameters returns the named parameters of a list as a form.
func (v *visit) parameters(names ...string) *form {
	f := v.newForm()
	for _, name := range names {
		if text := strings.TrimSpace(v.c.Query(name)); text != "" && len(text) <= maxQuery {
			f.values.Set(name, strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), ""))
		}
	}
	return f
}

// address returns the address of a list with the form's values as parameters, and with others.
func (f *form) address(path string, more ...string) string {
	for name := range f.values {
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

// older returns the address of a list's next page; empty when there is none.
func (f *form) older(path string, next int64) string {
	if next == 0 {
		return ""
	}
	return f.address(path, "before", strconv.FormatInt(next, 10))
}

// after returns the parameter after which a list continues; 0 at the beginning.
func (v *visit) after(name string) int64 {
	n, err := strconv.ParseInt(v.c.Query(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// fill reads one page of a list. If few rows match the filter, it searches further back for a limited time; the page
// then has a link to continue.
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

// eachRow calls row with all rows of a list, and takes a turn for each part that it reads.
func eachRow[T any](v *visit, list func(before int64, limit int) ([]T, int64, error), row func(*T) error) error {
	for before := int64(0); ; {
		var page []T
		if err := v.inTurn(func() (err error) {
			page, before, err = list(before, rowsAtOnce)
			return err
		}); err != nil {
			return err
		}
		for i := range page {
			if err := row(&page[i]); err != nil {
				return err
			}
		}
		if before == 0 {
			return nil
		}
	}
}

// cut returns at most limit rows of a list that was read with one more, and whether there are more.
func cut[T any](list []T, limit int) ([]T, bool) {
	if len(list) <= limit {
		return list, false
	}
	return list[:limit], true
}

// day parses a field with a date and returns midnight in Bujumbura; the zero time when it is empty.
func (f *form) day(field string) time.Time {
	value := f.Value(field)
	if value == "" {
		return time.Time{}
	}
	day, err := time.ParseInLocation(time.DateOnly, value, bujumbura)
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
