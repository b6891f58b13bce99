package sending

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/campaigns"
	"intumwa/campaigns/sheets"
	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/texts"
)

const (
	smallUpload = campaigns.MaxSmallFile + web.MaxForm // of a small one
	uploadTime  = 2 * time.Minute                      // for receiving and checking a large file
	listed      = 20                                   // campaigns that a page shows
)

type campaignsPage struct {
	Senders   []web.Option // approved ones
	Encodings []web.Option
	Again     bool // a file was read wrongly
	Company   accounts.Company
	Wrong     web.Firsts[sheets.Problem]
	Campaigns []messages.BatchRecord
	Most      int
	MiB       int // of a file
	Example   string
}

// Campaigns is GET /campaigns.
func (ps *Pages) Campaigns(v *web.Visit, t web.Tenant) error { return ps.showCampaigns(v, t, nil) }

func (ps *Pages) showCampaigns(v *web.Visit, t web.Tenant, wrong []sheets.Problem) (err error) {
	most, size := campaigns.Limits(&t.Company)
	data := campaignsPage{Company: t.Company, Encodings: encodings(v.Lang), Again: v.C.Query("again") != "", Most: most,
		MiB:     size >> 20,
		Example: v.Lang.T("campaign.example.head") + "\n+257 79 12 34 00;Aline;25 000\n71 23 45 00;Éric;18 500\n"}
	for _, problem := range wrong {
		data.Wrong.Add(problem)
	}
	if data.Senders, err = ps.approvedSenders(v, t); err != nil {
		return err
	}
	data.Campaigns, err = ps.Deps.Messages.Batches(v.Ctx(), t.CompanyID(), listed)
	return v.Page(err, "campaigns", data)
}

// encodings are the choices of the form; the first is to guess.
func encodings(lang *texts.Language) (list []web.Option) {
	for _, e := range sheets.Encodings {
		text := e.Name
		if e.Key != "" {
			text = lang.T(e.Key)
		}
		list = append(list, web.Option{Value: e.Name, Text: text})
	}
	return list
}

// approvedSenders returns the approved sender IDs as options.
func (ps *Pages) approvedSenders(v *web.Visit, t web.Tenant) (list []web.Option, err error) {
	senders, err := ps.Deps.Senders.SendersOf(v.Ctx(), t.Company.ID)
	for _, s := range senders {
		if s.Approved {
			list = append(list, web.Option{Value: s.Name, Text: s.Name})
		}
	}
	return list, err
}

// CheckCampaign is POST /campaigns: it reads and checks a file, and charges nothing.
func (ps *Pages) CheckCampaign(v *web.Visit, t web.Tenant) error {
	leave, err := v.UploadTurn(t.Company.ID)
	if err != nil {
		return err
	}
	defer leave()
	leaveLarge, err := enterLarge(v, t)
	if err != nil {
		return err
	}
	defer leaveLarge()
	file, fileName, err := v.Upload(campaigns.MaxFile)
	if err == nil {
		err = v.TakeTurn()
	}
	if err != nil {
		return err
	}
	senders, err := ps.approvedSenders(v, t)
	if err != nil {
		return err
	}
	f := v.Form()
	f.Values.Set("name", cmp.Or(strings.TrimSpace(f.Value("name")), strings.TrimSuffix(fileName, path.Ext(fileName))))
	name, sender, text, costCenter := f.Name("name"), f.Value("sender"), f.Required("template"),
		costCenter(f, "cost_center")
	if !web.Among(senders, sender) {
		f.Refuse("sender", "campaign.sender.wrong")
	}
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(
		text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' || r == 0x7f }):
		f.Refuse("template", "campaign.template.octets")
	case utf8.RuneCountInString(text) > sms.MaxText:
		f.Refuse("template", "campaign.template.long", sms.MaxText)
	default:
		if near, line, column, found := sms.FirstBrace(text); found {
			f.Refuse("template", "campaign.template.brace", near, line, column)
		}
	}
	about := sheets.Reading{Encoding: f.Value("encoding"), Numbers: strings.TrimSpace(f.Value("numbers"))}
	if !web.Among(encodings(v.Lang), about.Encoding) {
		f.Refuse("encoding", "campaign.encoding.wrong")
	}
	if len(file) == 0 {
		f.Refuse("file", "campaign.file.none")
	} else if _, most := campaigns.Limits(&t.Company); len(file) > most {
		f.Refuse("file", "campaign.file.large", most>>20)
	}
	if !f.OK() {
		return ps.Campaigns(v, t)
	}
	if sheets.IsBook(file) {
		leaveBook, err := v.HeavyTurn(t.Company.ID)
		if err != nil {
			return err
		}
		defer leaveBook()
	}
	p, err := ps.principal(v, t)
	if err != nil {
		return err
	}
	rows, wrong := ps.Deps.Campaigns.Open(v.Lang, p.Company, sender, text, file, about)
	if len(wrong) == 0 {
		made := campaigns.Campaign{ID: ulid.Make(), Company: t.Company.ID, Name: name, Sender: sender, Template: text,
			CostCenter: costCenter, Reading: rows.Reading()}
		err = ps.Deps.Campaigns.Keep(v.Ctx(), &made, rows.Next)
		if _, bad := errors.AsType[*sheets.Error](err); !bad {
			return v.Done(err, draftPath(&made), "")
		}
		wrong = append(wrong, sheets.ProblemOf(v.Lang, err))
	}
	f.Fail("campaign.wrong")
	return ps.showCampaigns(v, t, wrong)
}

// enterLarge waits for a slot for a large form and extends its time limit. Anyone can create companies, so the form of
// a company that cannot send is never large.
func enterLarge(v *web.Visit, t web.Tenant) (leave func(), err error) {
	r := v.C.Request
	if r.ContentLength >= 0 && r.ContentLength <= smallUpload || !campaigns.MaySend(&t.Company) {
		r.Body = http.MaxBytesReader(v.C.Writer, r.Body, smallUpload)
		return func() {}, nil
	}
	if leave, err = v.LargeTurn(t.Company.ID); err != nil {
		return nil, err
	}
	control, end := http.NewResponseController(v.C.Writer), time.Now().Add(uploadTime)
	if err := errors.Join(control.SetReadDeadline(end), control.SetWriteDeadline(end)); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// LeaveOut is POST /campaigns/drafts/:draft/without: it removes the lines of one problem from the campaign. It sends
// nothing: the page then shows the remaining lines and their price.
func (ps *Pages) LeaveOut(v *web.Visit, _ web.Tenant, made *campaigns.Campaign) error {
	left, err := ps.Deps.Campaigns.LeaveOut(v.Ctx(), made, v.Form().Value("what"))
	flash := "flash.campaign.without"
	if !left {
		flash = ""
	}
	return v.Done(err, draftPath(made), flash)
}

// SendCampaign is POST /campaigns/drafts/:draft/send: it sends the first part.
func (ps *Pages) SendCampaign(v *web.Visit, t web.Tenant, made *campaigns.Campaign) error {
	f := v.Form()
	later := later(f, "send_at")
	var p *accounts.Principal
	var err error
	if f.OK() {
		p, err = ps.sender(v, t)
	}
	ctx := context.WithoutCancel(v.Ctx()) // the campaign is sent even if the browser disconnects
	if err == nil && f.OK() {
		var marked bool
		if marked, err = ps.Deps.Campaigns.Recheck(ctx, v.Lang, p, made); marked { // the page lists them now
			f.Fail("campaign.changed")
		}
	}
	var sums campaigns.Sums
	if err == nil {
		sums, err = ps.Deps.Campaigns.Sums(ctx, made)
	}
	if err != nil {
		return err
	}
	if f.OK() && (sums.Faults+sums.OptedOut > 0 || sums.Recipients == 0) { // the page has no button for it
		f.Fail("campaign.hindered")
	}
	if f.OK() {
		err = ps.notSent(v, ps.Deps.Campaigns.Begin(ctx, p, made, sums, later))
	}
	switch {
	case err != nil:
		return err
	case !f.OK():
		return ps.Checked(v, t, made)
	}
	flash := "flash.campaign"
	if b, _ := ps.Deps.Messages.BatchByULID(ctx, t.CompanyID(), made.ID); b.State() == messages.BatchScheduled {
		// also by quiet hours
		flash = "flash.campaign.later"
	}
	return v.Redirect("/batches/"+made.ID.String(), flash)
}

// later parses a field with a future day and time in Bujumbura; empty is the zero time.
func later(f *web.Form, field string) time.Time {
	at, now := f.Instant(field, "draft.later.wrong"), postgres.Now()
	switch {
	case !at.IsZero() && at.Before(now.Add(-time.Minute)): // the current minute counts as now
		f.Refuse(field, "draft.later.wrong")
	case at.After(now.Add(sms.MaxAhead)):
		f.Refuse(field, "draft.later.far")
	}
	return at
}

// DropCampaign is POST /campaigns/drafts/:draft/drop.
func (ps *Pages) DropCampaign(v *web.Visit, _ web.Tenant, made *campaigns.Campaign) error {
	dropped, err := ps.Deps.Campaigns.Drop(v.Ctx(), made)
	if err == nil && !dropped {
		return v.Redirect(draftPath(made), "")
	}
	return v.Done(err, "/campaigns", "flash.campaign.dropped")
}

// CampaignUpload is the limits of the form with a campaign's file.
var CampaignUpload = web.Upload{Size: campaigns.MaxFile + web.MaxForm, Time: uploadTime}

// ExportLeftOut is GET /batches/:id/left-out.csv: the recipients that later parts of a campaign left out.
func (ps *Pages) ExportLeftOut(v *web.Visit, t web.Tenant) error {
	made, err := ps.Deps.Campaigns.Get(v.Ctx(), t.CompanyID(), v.ULID("id"))
	if err != nil {
		return err
	}
	return ps.exportRows(v, t, &made, campaigns.Faults,
		func(r *campaigns.Row) string { return v.Lang.Refusal(sms.Refusal{Reason: r.Fault}) })
}

// ContinueCampaign is POST /batches/:id/continue: the reason for the pause is gone, or the user sends it instead of the
// person who did.
func (ps *Pages) ContinueCampaign(v *web.Visit, t web.Tenant) error {
	id := v.ULID("id")
	return v.Done(ps.Deps.Campaigns.Continue(v.Ctx(), t.CompanyID(), id, t.User.ID), "/batches/"+id.String(),
		"flash.campaign.continue")
}

// CancelBatch is POST /batches/:id/cancel. It continues even if the browser disconnects.
func (ps *Pages) CancelBatch(v *web.Visit, t web.Tenant) error {
	batch, err := ps.Deps.Messages.BatchByULID(v.Ctx(), t.CompanyID(), v.ULID("id"))
	if err != nil {
		return err
	}
	done, err := ps.By(v).CancelBatch(context.WithoutCancel(v.Ctx()), batch.ULID,
		messages.Queued{Company: t.Company.ID, Batch: batch.Key}, "")
	if err == nil {
		err = ps.Deps.Campaigns.Delete(v.Ctx(), batch.ULID) // its further parts
	}
	flash := "flash.batch.cancelled"
	if err == nil && done.Cancelled == 0 && batch.Awaited == 0 {
		flash = "flash.batch.uncancelled"
	}
	return v.Done(err, "/batches/"+batch.ULID.String(), flash)
}
