package dashboard

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/oklog/ulid/v2"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/operations"
	"intumwa/texts"
)

const (
	sheetRows    = 200 // rows of a printed sheet: 90 KB
	maxThreshold = 1_000_000_000
)

// entryKinds maps the kinds of ledger rows to the keys of their texts.
var entryKinds = map[string]string{
	billing.KindSend: "statement.kind.send", billing.KindRefund: "statement.kind.refund", billing.KindAdjustment: "statement.kind.adjustment",
	billing.KindCorrection: "statement.kind.correction",
}

// Kind returns the kind of a ledger row in words.
func (p *view) Kind(kind string) string { return p.T(entryKinds[kind]) }

// reference returns the ULID of a ledger row's message or batch; empty for an adjustment.
func reference(ref *[16]byte) string {
	if ref == nil {
		return ""
	}
	return ulid.ULID(*ref).String()
}

type statementPage struct {
	listing[billing.Entry]

	Kinds            []option
	Company          string
	Number           int64
	Period           string // the period
	Opening, Closing int64  // balances of the period, or of the sheet
	Credits          int64
	Threshold        int64  // the highest; 0: none
	Thresholds       string // all, as the field has them
	Owner            string // recipient of the warning
	Print            string
	More             bool // not the last sheet
	At               time.Time
}

// statementFilter reads the filter of the form.
func (v *visit) statementFilter() (filter billing.StatementFilter) {
	f := v.parameters("from", "to", "kind")
	filter.From, filter.To = f.days()
	if _, known := entryKinds[f.Value("kind")]; known {
		filter.Kind = f.Value("kind")
	}
	return filter
}

func (v *visit) newStatement(t tenant, f billing.StatementFilter) statementPage {
	return statementPage{Company: t.Company.Name, Number: t.Company.ID, Period: period(v.lang, f.From, f.To), At: postgres.Now()}
}

// statement is GET /statement.
func (d *Dashboard) statement(v *visit, t tenant) (err error) {
	ledger, filter := d.rooms.Statements, v.statementFilter()
	p := v.newStatement(t, filter)
	p.Kinds = v.options("", "statement.kind.all", billing.KindSend, "statement.kind.send", billing.KindRefund, "statement.kind.refund",
		billing.KindAdjustment, "statement.kind.adjustment", billing.KindCorrection, "statement.kind.correction")
	p.listing, err = list(v, "/statement", rowsOnPage, func(before int64, limit int) ([]billing.Entry, int64, error) {
		return ledger.Statement(v.ctx(), t.company(), filter, before, limit)
	})
	if err == nil {
		p.Opening, p.Closing, err = ledger.Period(v.ctx(), t.company(), filter)
	}
	if err == nil {
		p.Credits, err = ledger.Balance(v.ctx(), t.Company.ID)
	}
	if err != nil {
		return err
	}
	all, err := ledger.Thresholds(v.ctx(), t.company())
	if err != nil {
		return err
	}
	if p.Owner, err = v.owner(t); err != nil {
		return err
	}
	if len(all) > 0 {
		p.Threshold, p.Thresholds = all[0], joinNumbers(all)
	}
	f := v.form()
	p.Print = address("/statement/print", "from", f.Value("from"), "to", f.Value("to"))
	return v.render("statement", p)
}

// printStatement is GET /statement/print: all rows of a period, oldest first, on sheets with opening and closing
// balances.
func (d *Dashboard) printStatement(v *visit, t tenant) error {
	ledger, filter, after := d.rooms.Statements, v.statementFilter(), v.after("after")
	if !v.form().ok() {
		return d.statement(v, t)
	}
	filter.Kind = ""
	p := v.newStatement(t, filter)
	p.Later = after > 0
	page, next, err := ledger.Sheet(v.ctx(), t.company(), filter, after, sheetRows)
	if err == nil && len(page) == 0 {
		p.Opening, p.Closing, err = ledger.Period(v.ctx(), t.company(), filter)
		if p.Later {
			p.Opening = p.Closing
		}
	}
	if err != nil {
		return err
	}
	if len(page) > 0 {
		p.Opening, p.Closing = page[0].BalanceAfter-page[0].Amount, page[len(page)-1].BalanceAfter
	}
	p.Rows, p.More = page, next != 0
	if p.More {
		f := v.form()
		p.Next = address("/statement/print", "from", f.Value("from"), "to", f.Value("to"), "after", strconv.FormatInt(next, 10))
	}
	return v.render("sheet", p)
}

// exportStatement is GET /statement.csv.
func (d *Dashboard) exportStatement(v *visit, t tenant) error {
	filter := v.statementFilter()
	if !v.form().ok() {
		return d.statement(v, t)
	}
	heads := v.texts("csv.time", "statement.kind", "statement.amount", "statement.balance", "statement.reference", "statement.note")
	return v.export(t, "statement", heads, func(row func(...string) error) error {
		for e, err := range d.rooms.Statements.Entries(v.ctx(), t.company(), filter, v.inTurn) {
			if err == nil {
				err = row(cellTime(&e.At), v.lang.T(entryKinds[e.Kind]), strconv.FormatInt(e.Amount, 10), strconv.FormatInt(e.BalanceAfter, 10),
					reference(e.Ref), cell(e.Note))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// setThreshold is POST /statement/threshold.
func (d *Dashboard) setThreshold(v *visit, t tenant) error {
	f := v.form()
	thresholds, ok := thresholdsIn(f.Value("threshold"))
	err := billing.ErrThresholds
	if ok {
		_, err = v.by().SetCompany(v.ctx(), t.Company.ID, operations.CompanyChange{LowBalance: &thresholds})
	}
	switch {
	case errors.Is(err, billing.ErrThresholds):
		f.refuse("threshold", "statement.threshold.wrong", maxThreshold)
		return d.statement(v, t)
	case err != nil:
		return err
	case len(thresholds) == 0:
		return v.redirect("/statement", "flash.threshold.off")
	}
	return v.redirect("/statement", "flash.threshold")
}

// thresholdsIn parses whole numbers separated by commas or blanks; 0 counts as none. ok is false for other text.
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

// period returns a range of days in a language; either end may be open.
func period(l *texts.Language, from, to time.Time) string {
	last := to.Add(-time.Hour)
	switch {
	case !from.IsZero() && !to.IsZero():
		return l.T("period.both", l.Date(from), l.Date(last))
	case !from.IsZero():
		return l.T("period.from", l.Date(from))
	case !to.IsZero():
		return l.T("period.to", l.Date(last))
	}
	return l.T("period.all")
}
