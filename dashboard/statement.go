package dashboard

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/oklog/ulid/v2"

	"intumwa/billing"
	"intumwa/dashboard/words"
	"intumwa/internal/postgres"
)

const (
	statementRows = 50  // of a page
	sheetRows     = 200 // rows of a printed sheet: 90 KB
	maxThreshold  = 1_000_000_000
)

// entryKinds maps the kinds of ledger rows to the keys of their texts.
var entryKinds = map[string]string{
	billing.KindSend: "statement.kind.send", billing.KindRefund: "statement.kind.refund", billing.KindAdjustment: "statement.kind.adjustment",
}

// entry is a row of a statement as shown on a page.
type entry struct {
	billing.Entry

	What string // the kind, in the user's language
}

// Reference returns the ULID of the message or batch; empty for an adjustment.
func (e entry) Reference() string {
	if e.Ref == nil {
		return ""
	}
	return ulid.ULID(*e.Ref).String()
}

type statementPage struct {
	Company          string
	Number           int64
	Period           period
	Says             string
	Kind             string
	Entries          []entry
	Opening, Closing int64 // balances of the period, or of the sheet
	Credits          int64
	Threshold        int64  // the highest; 0: none
	Thresholds       string // all, as the field has them
	Next             string // address of the next page
	Export, Print    string
	Carried          bool // this is not the first sheet
	More             bool // this is not the last sheet
	At               time.Time
}

func (v *visit) statementFilter() (period, billing.StatementFilter) {
	p := v.period()
	f := billing.StatementFilter{From: p.from, To: p.to}
	if _, known := entryKinds[v.c.Query("kind")]; known {
		f.Kind = v.c.Query("kind")
	}
	return p, f
}

func (v *visit) entries(all []billing.Entry) []entry {
	shown := make([]entry, len(all))
	for i := range all {
		shown[i] = entry{all[i], v.lang.T(entryKinds[all[i].Kind])}
	}
	return shown
}

// statement is GET /statement.
func (d *Dashboard) statement(v *visit, t tenant) {
	if data, ok := v.statementPage(t); ok {
		v.render(http.StatusOK, "statement", data)
	}
}

func (v *visit) statementPage(t tenant) (data statementPage, ok bool) {
	ledger, company := v.d.rooms.Statements, t.company()
	p, f := v.statementFilter()
	data = statementPage{Company: t.Company.Name, Number: t.Company.ID, Period: p, Says: p.text(v.lang), Kind: f.Kind, At: postgres.Now()}
	page, next, err := ledger.Statement(v.ctx(), company, f, v.after("before"), statementRows)
	if err == nil {
		data.Opening, data.Closing, err = ledger.Period(v.ctx(), company, f)
	}
	if err == nil {
		data.Credits, err = ledger.Balance(v.ctx(), int64(company))
	}
	if err == nil {
		var all []int64
		if all, err = ledger.Thresholds(v.ctx(), company); len(all) > 0 {
			data.Threshold, data.Thresholds = all[0], joinNumbers(all)
		}
	}
	if err != nil {
		v.handleError("reading a statement", err)
		return data, false
	}
	data.Entries = v.entries(page)
	filter := []string{"from", p.First, "to", p.Last, "kind", f.Kind}
	data.Export = address("/statement.csv", filter...)
	data.Print = address("/statement/print", "from", p.First, "to", p.Last)
	if next != 0 {
		data.Next = address("/statement", append(filter, "before", strconv.FormatInt(next, 10))...)
	}
	return data, true
}

// printStatement is GET /statement/print: all rows of a period, the oldest first, on sheets with opening and closing
// balances.
func (d *Dashboard) printStatement(v *visit, t tenant) {
	ledger, company := d.rooms.Statements, t.company()
	p := v.period()
	f := billing.StatementFilter{From: p.from, To: p.to}
	after := v.after("after")
	data := statementPage{Company: t.Company.Name, Number: t.Company.ID, Period: p, Says: p.text(v.lang), At: postgres.Now(), Carried: after > 0}
	page, next, err := ledger.Sheet(v.ctx(), company, f, after, sheetRows)
	if err == nil && len(page) == 0 {
		data.Opening, data.Closing, err = ledger.Period(v.ctx(), company, f)
		if data.Carried {
			data.Opening = data.Closing
		}
	}
	if err != nil {
		v.handleError("reading a statement", err)
		return
	}
	if len(page) > 0 {
		data.Opening, data.Closing = page[0].BalanceAfter-page[0].Amount, page[len(page)-1].BalanceAfter
	}
	data.Entries, data.More = v.entries(page), next != 0
	if data.More {
		data.Next = address("/statement/print", "from", p.First, "to", p.Last, "after", strconv.FormatInt(next, 10))
	}
	v.render(http.StatusOK, "sheet", data)
}

// exportStatement is GET /statement.csv.
func (d *Dashboard) exportStatement(v *visit, t tenant) {
	_, f := v.statementFilter()
	heads := []string{v.lang.T("csv.time"), v.lang.T("statement.kind"), v.lang.T("statement.amount"), v.lang.T("statement.balance"),
		v.lang.T("statement.reference"), v.lang.T("statement.note")}
	v.export(t, "statement", heads, func(row func(...string) error) error {
		for e, err := range d.rooms.Statements.Entries(v.ctx(), t.company(), f, v.inTurn) {
			if err == nil {
				err = row(cellTime(&e.At), v.lang.T(entryKinds[e.Kind]), strconv.FormatInt(e.Amount, 10), strconv.FormatInt(e.BalanceAfter, 10),
					entry{Entry: e}.Reference(), cell(e.Note))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// setThreshold is POST /statement/threshold.
func (d *Dashboard) setThreshold(v *visit, t tenant) {
	f := v.form()
	thresholds, ok := thresholdsIn(f.Value("threshold"))
	var err error
	if ok {
		err = d.rooms.Ledger.SetThresholds(v.ctx(), t.company(), thresholds...)
	}
	if !ok || errors.Is(err, billing.ErrThresholds) {
		f.refuse("threshold", "statement.threshold.wrong", maxThreshold)
		if data, ok := v.statementPage(t); ok {
			v.renderForm("statement", data, f)
		}
		return
	}
	if err != nil {
		v.handleError("storing a threshold", err)
		return
	}
	if len(thresholds) == 0 {
		v.redirect("/statement", "flash.threshold.off")
		return
	}
	v.redirect("/statement", "flash.threshold")
}

// thresholdsIn reads whole numbers separated by commas or blanks; 0 counts as none. ok is false where something else
// stands there.
func thresholdsIn(text string) (thresholds []int64, ok bool) {
	for _, each := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) }) {
		n, err := strconv.ParseInt(each, 10, 64)
		if err != nil || n < 0 || n > maxThreshold {
			return nil, false
		}
		if n > 0 {
			thresholds = append(thresholds, n)
		}
	}
	return thresholds, true
}

func joinNumbers(all []int64) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(texts, ", ")
}

// ulid returns the ULID in the path. When it is not one, it writes the response and returns false.
func (v *visit) ulid(name string) (ulid.ULID, bool) {
	id, err := ulid.ParseStrict(v.c.Param(name))
	if err != nil {
		v.renderError(http.StatusNotFound)
	}
	return id, err == nil
}

// fileName returns a name for a download that every system accepts.
func fileName(what string, company int64, at time.Time) string {
	return "intumwa-" + what + "-" + strconv.FormatInt(company, 10) + "-" + at.In(words.Bujumbura).Format("20060102-1504") + ".csv"
}

// period is a range of days: both ends are included, either may be open.
type period struct {
	First, Last string // as the fields hold them: 2026-03-31, or empty
	from, to    time.Time
}

// period reads the parameters from and to; an invalid day is ignored.
func (v *visit) period() (p period) {
	if day, err := time.ParseInLocation(time.DateOnly, v.c.Query("from"), words.Bujumbura); err == nil && day.Year() >= 2000 && day.Year() < 3000 {
		p.First, p.from = day.Format(time.DateOnly), day
	}
	if day, err := time.ParseInLocation(time.DateOnly, v.c.Query("to"), words.Bujumbura); err == nil && day.Year() >= 2000 && day.Year() < 3000 {
		p.Last, p.to = day.Format(time.DateOnly), day.AddDate(0, 0, 1)
	}
	return p
}

// text returns the period in a language.
func (p period) text(l *words.Language) string {
	switch {
	case !p.from.IsZero() && !p.to.IsZero():
		return l.T("period.both", l.Date(p.from), l.Date(p.to.Add(-time.Hour)))
	case !p.from.IsZero():
		return l.T("period.from", l.Date(p.from))
	case !p.to.IsZero():
		return l.T("period.to", l.Date(p.to.Add(-time.Hour)))
	}
	return l.T("period.all")
}
