package following

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/reports/exports"
	"intumwa/sms"
	"intumwa/texts"
)

// monthsOfExports is how many months the form offers, this one included.
const monthsOfExports = 25

// exportsPage has the files of a company's months. Administrators have files of their own, with obscured numbers and
// without texts, as on their other pages.
type exportsPage struct {
	Files     []exports.Export
	Months    []web.Option
	Bodies    []web.Option // empty: texts are not offered
	Path      string
	Operators bool
	Company   string
}

// Live reports whether a file is being written.
func (p *exportsPage) Live() bool { return len(p.Files) > 0 && p.Files[0].DoneAt == nil }

// goneExports maps the reasons why a file has no content to their texts.
var goneExports = map[string]string{exports.GoneErased: "exports.gone.erased", exports.GoneTexts: "exports.gone.texts",
	exports.GoneSize: "exports.gone.size"}

// gone returns why a file has no content.
func gone(p *web.View, reason string) string { return p.T(goneExports[reason]) }

// kilobytes returns a number of bytes in units of a thousand, rounded up.
func kilobytes(p *web.View, size int64) string { return p.Number((size + 999) / 1000) }

// Exports is GET /messages/exports.
func (ps *Pages) Exports(v *web.Visit, t web.Tenant) error {
	p := exportsPage{Path: "/messages/exports", Bodies: v.Options("", "exports.bodies.no", "yes", "exports.bodies.yes")}
	return ps.exportsPage(v, p, t.CompanyID())
}

// AdminExports is GET /admin/companies/:id/exports.
func (ps *Pages) AdminExports(v *web.Visit) error {
	company, err := ps.Deps.Companies.CompanyByID(v.Ctx(), v.ID())
	if err != nil {
		return err
	}
	return ps.exportsPage(v, exportsPage{Path: web.CompanyPath(company.ID) + "/exports", Operators: true,
		Company: company.Name}, sms.CompanyID(company.ID))
}

func (ps *Pages) exportsPage(v *web.Visit, p exportsPage, company sms.CompanyID) (err error) {
	month, _ := exports.Span(postgres.Now().In(texts.Bujumbura))
	for n := range monthsOfExports {
		p.Months = append(p.Months, web.Option{Value: month.AddDate(0, -n, 0).Format("2006-01"),
			Text: v.Lang.Month(month.AddDate(0, -n, 0))})
	}
	p.Files, err = ps.Deps.Exports.List(v.Ctx(), company, p.Operators)
	if p.Operators {
		return v.Page(err, "adminexports", &p)
	}
	return v.Page(err, "exports", &p)
}

// AskExport is POST /messages/exports.
func (ps *Pages) AskExport(v *web.Visit, t web.Tenant) error {
	return ps.requestExport(v, exports.Request{Company: t.CompanyID(), Bodies: v.Form().Value("bodies") == "yes"},
		"/messages/exports",
		func() error { return ps.Exports(v, t) })
}

// AdminAskExport is POST /admin/companies/:id/exports.
func (ps *Pages) AdminAskExport(v *web.Visit) error {
	return ps.requestExport(v, exports.Request{Company: sms.CompanyID(v.ID()), Operators: true}, web.CompanyPath(v.ID())+
		"/exports",
		func() error { return ps.AdminExports(v) })
}

func (ps *Pages) requestExport(v *web.Visit, r exports.Request, path string, again func() error) (err error) {
	f := v.Form()
	if r.Month, err = exports.ParseMonth(f.Value("month")); err != nil {
		f.Refuse("month", "exports.month.wrong")
		return again()
	}
	r.Language = v.Lang.Tag
	switch err = ps.By(v).AskExport(v.Ctx(), r); {
	case errors.Is(err, exports.ErrRunning):
		f.Deny(http.StatusConflict, "exports.running")
		return again()
	case errors.Is(err, exports.ErrFull):
		f.Deny(http.StatusServiceUnavailable, "exports.full")
		return again()
	}
	return v.Done(err, path, "flash.export")
}

// ExportFile is GET /messages/exports/:export/messages.csv.
func (ps *Pages) ExportFile(v *web.Visit, t web.Tenant) error {
	return ps.sendExport(v, t.Company.ID, t.CompanyID(), false)
}

// AdminExportFile is GET /admin/companies/:id/exports/:export/messages.csv.
func (ps *Pages) AdminExportFile(v *web.Visit) error {
	return ps.sendExport(v, v.Session.User.ID, sms.CompanyID(v.ID()), true)
}

// sendExport responds with a finished file, or with the range of it that the request asks for: a download that was cut
// off can go on. owner has the turn.
func (ps *Pages) sendExport(v *web.Visit, owner int64, company sms.CompanyID, operators bool) error {
	id, _ := strconv.ParseInt(v.C.Param("export"), 10, 64) // 0 has no row
	x, err := ps.Deps.Exports.Get(v.Ctx(), company, operators, id)
	if err != nil {
		return err
	}
	v.Leave() // it may have to wait for a download to end
	leave, err := v.DownloadTurn(owner)
	if err != nil {
		return err
	}
	defer leave()
	h := v.C.Writer.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="intumwa-messages-%d-%s.csv"`, company,
		x.Month.Format("2006-01")))
	h.Set("ETag", fmt.Sprintf(`"%d-%d"`, x.ID, x.Size))
	to := &web.Served{ResponseWriter: v.C.Writer, To: web.NewDownload(v)}
	content := &web.Watched{ReadSeeker: ps.Deps.Exports.Open(v.Ctx(), x, v.InTurn)}
	request := v.C.Request.Clone(v.Ctx())
	if v.HeadOnly() {
		request.Method = http.MethodHead
	}
	if strings.Contains(request.Header.Get("Range"), ",") { // each range costs the reading of a piece
		request.Header.Del("Range")
	}
	http.ServeContent(to, request, "", *x.DoneAt, content)
	if err := errors.Join(content.Err, to.Err); err != nil {
		v.CutOff("export", err)
	}
	return nil
}
