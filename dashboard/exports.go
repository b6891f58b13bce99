package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"intumwa/exports"
	"intumwa/internal/postgres"
	"intumwa/sms"
	"intumwa/texts"
)

// monthsOfExports is how many months the form offers, this one included.
const monthsOfExports = 25

// exportsPage has the files of a company's months. Administrators have files of their own, with obscured numbers and
// without texts, as on their other pages.
type exportsPage struct {
	Files     []exports.Export
	Months    []option
	Bodies    []option // empty: texts are not offered
	Path      string
	Operators bool
	Company   string
}

// Live reports whether a file is being written.
func (p *exportsPage) Live() bool { return len(p.Files) > 0 && p.Files[0].DoneAt == nil }

// Month returns the text of a file's month.
func (p *view) Month(month time.Time) string { return p.Language.Month(month) }

// goneExports maps the reasons why a file has no content to their texts.
var goneExports = map[string]string{exports.GoneErased: "exports.gone.erased", exports.GoneTexts: "exports.gone.texts", exports.GoneSize: "exports.gone.size"}

// Gone returns why a file has no content.
func (p *view) Gone(reason string) string { return p.T(goneExports[reason]) }

// Kilobytes returns a number of bytes in units of a thousand, rounded up.
func (p *view) Kilobytes(size int64) string { return p.Number((size + 999) / 1000) }

// exports is GET /messages/exports.
func (d *Dashboard) exports(v *visit, t tenant) error {
	p := exportsPage{Path: "/messages/exports", Bodies: v.options("", "exports.bodies.no", "yes", "exports.bodies.yes")}
	return v.exportsPage(p, t.company())
}

// adminExports is GET /admin/companies/:id/exports.
func (d *Dashboard) adminExports(v *visit) error {
	company, err := d.rooms.Companies.CompanyByID(v.ctx(), v.id())
	if err != nil {
		return err
	}
	return v.exportsPage(exportsPage{Path: companyPath(company.ID) + "/exports", Operators: true, Company: company.Name}, sms.CompanyID(company.ID))
}

func (v *visit) exportsPage(p exportsPage, company sms.CompanyID) (err error) {
	month, _ := exports.Span(postgres.Now().In(texts.Bujumbura))
	for n := range monthsOfExports {
		p.Months = append(p.Months, option{month.AddDate(0, -n, 0).Format("2006-01"), v.lang.Month(month.AddDate(0, -n, 0))})
	}
	p.Files, err = v.d.rooms.Exports.List(v.ctx(), company, p.Operators)
	if p.Operators {
		return v.page(err, "adminexports", &p)
	}
	return v.page(err, "exports", &p)
}

// askExport is POST /messages/exports.
func (d *Dashboard) askExport(v *visit, t tenant) error {
	return v.askExport(exports.Request{Company: t.company(), Bodies: v.form().Value("bodies") == "yes"}, "/messages/exports",
		func() error { return d.exports(v, t) })
}

// adminAskExport is POST /admin/companies/:id/exports.
func (d *Dashboard) adminAskExport(v *visit) error {
	return v.askExport(exports.Request{Company: sms.CompanyID(v.id()), Operators: true}, companyPath(v.id())+"/exports",
		func() error { return d.adminExports(v) })
}

func (v *visit) askExport(r exports.Request, path string, again func() error) (err error) {
	f := v.form()
	if r.Month, err = exports.ParseMonth(f.Value("month")); err != nil {
		f.refuse("month", "exports.month.wrong")
		return again()
	}
	r.Language = v.lang.Tag
	switch err = v.by().AskExport(v.ctx(), r); {
	case errors.Is(err, exports.ErrRunning):
		f.deny(http.StatusConflict, "exports.running")
		return again()
	case errors.Is(err, exports.ErrFull):
		f.deny(http.StatusServiceUnavailable, "exports.full")
		return again()
	}
	return v.done(err, path, "flash.export")
}

// exportFile is GET /messages/exports/:export/messages.csv.
func (d *Dashboard) exportFile(v *visit, t tenant) error {
	return v.sendExport(t.Company.ID, t.company(), false)
}

// adminExportFile is GET /admin/companies/:id/exports/:export/messages.csv.
func (d *Dashboard) adminExportFile(v *visit) error {
	return v.sendExport(v.session.User.ID, sms.CompanyID(v.id()), true)
}

// sendExport responds with a finished file, or with the range of it that the request asks for: a download that was cut
// off can go on. owner has the turn.
func (v *visit) sendExport(owner int64, company sms.CompanyID, operators bool) error {
	id, _ := strconv.ParseInt(v.c.Param("export"), 10, 64) // 0 has no row
	x, err := v.d.rooms.Exports.Get(v.ctx(), company, operators, id)
	if err != nil {
		return err
	}
	v.leave() // it may have to wait for a download to end
	leave, err := v.downloadTurn(owner)
	if err != nil {
		return err
	}
	defer leave()
	h := v.c.Writer.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="intumwa-messages-%d-%s.csv"`, company, x.Month.Format("2006-01")))
	h.Set("ETag", fmt.Sprintf(`"%d-%d"`, x.ID, x.Size))
	to := &served{ResponseWriter: v.c.Writer, to: v.newDownload()}
	content := &watched{ReadSeeker: v.d.rooms.Exports.Open(v.ctx(), x, v.inTurn)}
	request := v.c.Request.Clone(v.ctx())
	if v.headOnly() {
		request.Method = http.MethodHead
	}
	if strings.Contains(request.Header.Get("Range"), ",") { // each range costs the reading of a piece
		request.Header.Del("Range")
	}
	http.ServeContent(to, request, "", *x.DoneAt, content)
	if err := errors.Join(content.err, to.err); err != nil {
		v.cutOff("export", err)
	}
	return nil
}
