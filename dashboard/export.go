package dashboard

import (
	"encoding/csv"
	"net/http"
	"strings"
	"sync"
	"time"

	"intumwa/dashboard/words"
	"intumwa/sms"
)

const (
	exportTime       = 10 * time.Minute // of a whole file
	exportPatience   = 30 * time.Second // for the reader to take the next part of it
	exportsOfCompany = 2                // at once, in one process
	exportsOfAll     = 8
	exportPart       = 500 // rows between flushes
)

// exports bounds the files that are written at once. The zero value is ready.
type exports struct {
	mu  sync.Mutex
	all int
	by  map[sms.CompanyID]int
}

func (e *exports) enter(company sms.CompanyID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.by == nil {
		e.by = map[sms.CompanyID]int{}
	}
	if e.all >= exportsOfAll || e.by[company] >= exportsOfCompany {
		return false
	}
	e.all++
	e.by[company]++
	return true
}

func (e *exports) leave(company sms.CompanyID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all--
	if e.by[company]--; e.by[company] == 0 {
		delete(e.by, company)
	}
}

// export answers with a CSV file that is written while write reads its rows: what it takes of memory does not depend on
// its length. It is UTF-8 with a byte order mark, without which Excel takes it for the system's old encoding; cells are
// divided by what the language's spreadsheets expect, a semicolon in French, where the comma divides decimals. A file
// that cannot be finished is cut off, so that the browser says so, and never looks whole.
func (v *visit) export(t tenant, what string, heads []string, write func(row func(...string) error) error) {
	if !v.d.exports.enter(t.id()) {
		v.c.Header("Retry-After", "30")
		v.oops(http.StatusTooManyRequests)
		return
	}
	defer v.d.exports.leave(t.id())
	out := csv.NewWriter(v.c.Writer)
	out.UseCRLF = true // RFC 4180
	if v.lang.Tag != "en" {
		out.Comma = ';'
	}
	control := http.NewResponseController(v.c.Writer)
	rows := 0
	begin := func() error {
		h := v.c.Writer.Header()
		h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
		h.Set("Content-Disposition", `attachment; filename="`+fileName(what, t.Company.ID, time.Now())+`"`)
		v.c.Status(http.StatusOK)
		if _, err := v.c.Writer.WriteString("\ufeff"); err != nil {
			return err
		}
		return out.Write(heads)
	}
	flush := func() error {
		// The server's own limit is for a page. A reader who takes nothing for so long has gone.
		if err := control.SetWriteDeadline(time.Now().Add(exportPatience)); err != nil {
			return err
		}
		out.Flush()
		if err := out.Error(); err != nil {
			return err
		}
		return control.Flush()
	}
	err := write(func(cells ...string) error {
		if rows == 0 {
			if err := begin(); err != nil {
				return err
			}
		}
		if rows++; rows%exportPart == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		return out.Write(cells)
	})
	switch {
	case err != nil && rows == 0:
		v.fail("reading rows of a file", err)
		return
	case err == nil && rows == 0:
		err = begin()
	}
	if err == nil {
		err = flush()
	}
	if err != nil {
		if v.c.Request.Context().Err() == nil {
			v.d.log.Warn("download cut off", "file", what, "rows", rows, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
}

// cell is a text in a file that spreadsheets open: one that they would take for a formula is made a text by an
// apostrophe in front. (OWASP, CSV injection: https://owasp.org/www-community/attacks/CSV_Injection.)
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20", []rune(text)[0]) {
		return "'" + text
	}
	return text
}

// cellTime is a time in Burundi, in the form that every spreadsheet knows; empty for none.
func cellTime(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.In(words.Bujumbura).Format(time.DateTime)
}
