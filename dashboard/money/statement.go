package money

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/oklog/ulid/v2"

	"intumwa/billing"
	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/operations"
	"intumwa/texts"
)

const (
	sheetRows    = 200 // rows of a printed sheet: 90 KB
	maxThreshold = 1_000_000_000
)

// entryKind returns the kind of a ledger row in words.
func entryKind(p *web.View, kind string) string { return p.T(texts.EntryKinds[kind]) }

// reference returns the ULID of a ledger row's message or batch; empty for an adjustment.
func reference(e billing.Entry) string {
	if e.Ref == nil || e.Kind != billing.KindSend && e.Kind != billing.KindRefund {
		return ""
	}
	return ulid.ULID(*e.Ref).String()
}

type statementPage struct {
	web.Listing[billing.Entry]

	Kinds            []web.Option
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
	Documents        map[[16]byte]string // names of the documents of rows, by the rows' references
}

// documents reads the names of the rows' documents.
func (ps *Pages) documents(v *web.Visit, rows []billing.Entry) (map[[16]byte]string, error) {
	var refs [][16]byte
	for i := range rows {
		if ref := rows[i].Ref; ref != nil && rows[i].Kind != billing.KindSend {
			refs = append(refs, *ref)
		}
	}
	return ps.Deps.Orders.Documents(v.Ctx(), refs)
}

// statementFilter reads the filter of the form.
func statementFilter(v *web.Visit) (filter billing.StatementFilter) {
	f := v.Parameters("from", "to", "kind")
	filter.From, filter.To = f.Days()
	if _, known := texts.EntryKinds[f.Value("kind")]; known {
		filter.Kind = f.Value("kind")
	}
	return filter
}

func newStatement(v *web.Visit, t web.Tenant, f billing.StatementFilter) statementPage {
	return statementPage{Company: t.Company.Name, Number: t.Company.ID, Period: period(v.Lang, f.From, f.To),
		At: postgres.Now()}
}

// Statement is GET /statement.
func (ps *Pages) Statement(v *web.Visit, t web.Tenant) (err error) {
	ledger, filter := ps.Deps.Statements, statementFilter(v)
	p := newStatement(v, t, filter)
	p.Kinds = v.Options("", "statement.kind.all", billing.KindSend, "statement.kind.send", billing.KindRefund,
		"statement.kind.refund",
		billing.KindAdjustment, "statement.kind.adjustment", billing.KindCorrection, "statement.kind.correction")
	p.Listing, err = web.List(v, "/statement", web.RowsOnPage,
		func(before int64, limit int) ([]billing.Entry, int64, error) {
			return ledger.Statement(v.Ctx(), t.CompanyID(), filter, before, limit)
		})
	if err == nil {
		p.Opening, p.Closing, err = ledger.Period(v.Ctx(), t.CompanyID(), filter)
	}
	if err == nil {
		p.Credits, err = ledger.Balance(v.Ctx(), t.Company.ID)
	}
	if err != nil {
		return err
	}
	if p.Documents, err = ps.documents(v, p.Rows); err != nil {
		return err
	}
	all, err := ledger.Thresholds(v.Ctx(), t.CompanyID())
	if err != nil {
		return err
	}
	if p.Owner, err = ps.Owner(v, t); err != nil {
		return err
	}
	if len(all) > 0 {
		p.Threshold, p.Thresholds = all[0], joinNumbers(all)
	}
	f := v.Form()
	p.Print = web.Address("/statement/print", "from", f.Value("from"), "to", f.Value("to"))
	return v.Render("statement", p)
}

// PrintStatement is GET /statement/print: all rows of a period, oldest first, on sheets with opening and closing
// balances.
func (ps *Pages) PrintStatement(v *web.Visit, t web.Tenant) error {
	ledger, filter, after := ps.Deps.Statements, statementFilter(v), v.After("after")
	if !v.Form().OK() {
		return ps.Statement(v, t)
	}
	filter.Kind = ""
	p := newStatement(v, t, filter)
	p.Later = after > 0
	page, next, err := ledger.Sheet(v.Ctx(), t.CompanyID(), filter, after, sheetRows)
	if err == nil && len(page) == 0 {
		p.Opening, p.Closing, err = ledger.Period(v.Ctx(), t.CompanyID(), filter)
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
	if p.Documents, err = ps.documents(v, page); err != nil {
		return err
	}
	if p.More {
		f := v.Form()
		p.Next = web.Address("/statement/print", "from", f.Value("from"), "to", f.Value("to"), "after",
			strconv.FormatInt(next, 10))
	}
	return v.Render("sheet", p)
}

// ExportStatement is GET /statement.csv.
func (ps *Pages) ExportStatement(v *web.Visit, t web.Tenant) error {
	filter := statementFilter(v)
	if !v.Form().OK() {
		return ps.Statement(v, t)
	}
	heads := v.Lang.Texts("csv.time", "statement.kind", "statement.amount", "statement.balance", "statement.reference",
		"statement.note")
	return v.Export(t, "statement", heads, func(row func(...string) error) error {
		for e, err := range ps.Deps.Statements.Entries(v.Ctx(), t.CompanyID(), filter, v.InTurn) {
			var names map[[16]byte]string
			if err == nil {
				names, err = ps.documents(v, []billing.Entry{e})
			}
			if err == nil {
				err = row(texts.CellTime(&e.At), v.Lang.T(texts.EntryKinds[e.Kind]), strconv.FormatInt(e.Amount, 10),
					strconv.FormatInt(e.BalanceAfter, 10),
					cmp.Or(documentOf(names, e.Ref), reference(e)), texts.Cell(e.Note))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// SetThreshold is POST /statement/threshold.
func (ps *Pages) SetThreshold(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	thresholds, ok := thresholdsIn(f.Value("threshold"))
	err := billing.ErrThresholds
	if ok {
		_, err = ps.By(v).SetCompany(v.Ctx(), t.Company.ID, operations.CompanyChange{LowBalance: &thresholds})
	}
	switch {
	case errors.Is(err, billing.ErrThresholds):
		f.Refuse("threshold", "statement.threshold.wrong", maxThreshold)
		return ps.Statement(v, t)
	case err != nil:
		return err
	case len(thresholds) == 0:
		return v.Redirect("/statement", "flash.threshold.off")
	}
	return v.Redirect("/statement", "flash.threshold")
}

// thresholdsIn parses whole numbers separated by commas or blanks; 0 counts as none. ok is false for other text.
func thresholdsIn(text string) (thresholds []int64, ok bool) {
	for _, each := range strings.FieldsFunc(text,
		func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) }) {
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
