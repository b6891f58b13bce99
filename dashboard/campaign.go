package dashboard

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
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/texts"
)

const (
	maxUpload   = campaigns.MaxFile + maxForm      // bytes of a form with a file
	smallUpload = campaigns.MaxSmallFile + maxForm // of a small one
	uploadTime  = 2 * time.Minute                  // for receiving and checking a large file
	listed      = 20                               // campaigns that a page shows
)

type campaignsPage struct {
	Senders   []option // approved ones
	Encodings []option
	Again     bool // a file was read wrongly
	Company   accounts.Company
	Wrong     firsts[campaigns.Problem]
	Campaigns []messages.BatchRecord
	Most      int
	MiB       int // of a file
	Example   string
}

// campaigns is GET /campaigns.
func (d *Dashboard) campaigns(v *visit, t tenant) error { return v.showCampaigns(t, nil) }

func (v *visit) showCampaigns(t tenant, wrong []campaigns.Problem) (err error) {
	most, size := campaigns.Limits(&t.Company)
	data := campaignsPage{Company: t.Company, Encodings: encodings(v.lang), Again: v.c.Query("again") != "", Most: most, MiB: size >> 20,
		Example: v.lang.T("campaign.example.head") + "\n+257 79 12 34 00;Aline;25 000\n71 23 45 00;Éric;18 500\n"}
	for _, problem := range wrong {
		data.Wrong.add(problem)
	}
	if data.Senders, err = v.approvedSenders(t); err != nil {
		return err
	}
	data.Campaigns, err = v.d.rooms.Messages.Batches(v.ctx(), t.company(), listed)
	return v.page(err, "campaigns", data)
}

// encodings are the choices of the form; the first is to guess.
func encodings(lang *texts.Language) (list []option) {
	for _, e := range campaigns.Encodings {
		text := e.Name
		if e.Key != "" {
			text = lang.T(e.Key)
		}
		list = append(list, option{e.Name, text})
	}
	return list
}

// approvedSenders returns the approved sender IDs as options.
func (v *visit) approvedSenders(t tenant) (list []option, err error) {
	senders, err := v.d.rooms.Senders.SendersOf(v.ctx(), t.Company.ID)
	for _, s := range senders {
		if s.Approved {
			list = append(list, option{s.Name, s.Name})
		}
	}
	return list, err
}

// checkCampaign is POST /campaigns: it reads and checks a file, and charges nothing.
func (d *Dashboard) checkCampaign(v *visit, t tenant) error {
	leave, err := v.uploadTurn(t.Company.ID, d.uploaders)
	if err != nil {
		return err
	}
	defer leave()
	leaveLarge, err := v.enterLarge(t)
	if err != nil {
		return err
	}
	defer leaveLarge()
	file, fileName, err := v.upload(campaigns.MaxFile)
	if err == nil {
		err = v.takeTurn()
	}
	if err != nil {
		return err
	}
	senders, err := v.approvedSenders(t)
	if err != nil {
		return err
	}
	f := v.form()
	f.values.Set("name", cmp.Or(strings.TrimSpace(f.Value("name")), strings.TrimSuffix(fileName, path.Ext(fileName))))
	name, sender, text, costCenter := f.name("name"), f.Value("sender"), f.required("template"), f.costCenter("cost_center")
	if !among(senders, sender) {
		f.refuse("sender", "campaign.sender.wrong")
	}
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' || r == 0x7f }):
		f.refuse("template", "campaign.template.octets")
	case utf8.RuneCountInString(text) > sms.MaxText:
		f.refuse("template", "campaign.template.long", sms.MaxText)
	default:
		if near, line, column, found := sms.FirstBrace(text); found {
			f.refuse("template", "campaign.template.brace", near, line, column)
		}
	}
	about := campaigns.Reading{Encoding: f.Value("encoding"), Numbers: strings.TrimSpace(f.Value("numbers"))}
	if !among(encodings(v.lang), about.Encoding) {
		f.refuse("encoding", "campaign.encoding.wrong")
	}
	if len(file) == 0 {
		f.refuse("file", "campaign.file.none")
	} else if _, most := campaigns.Limits(&t.Company); len(file) > most {
		f.refuse("file", "campaign.file.large", most>>20)
	}
	if !f.ok() {
		return d.campaigns(v, t)
	}
	if campaigns.IsBook(file) {
		leaveBook, err := v.heavyTurn(t.Company.ID)
		if err != nil {
			return err
		}
		defer leaveBook()
	}
	p, err := v.principal(t)
	if err != nil {
		return err
	}
	rows, wrong := d.rooms.Campaigns.Open(v.lang, p.Company, sender, text, file, about)
	if len(wrong) == 0 {
		made := campaigns.Campaign{ID: ulid.Make(), Company: t.Company.ID, Name: name, Sender: sender, Template: text, CostCenter: costCenter, Reading: rows.Reading()}
		err = d.rooms.Campaigns.Keep(v.ctx(), &made, rows.Next)
		if _, bad := errors.AsType[*campaigns.FileError](err); !bad {
			return v.done(err, draftPath(&made), "")
		}
		wrong = append(wrong, campaigns.ProblemOf(v.lang, err))
	}
	f.notice("campaign.wrong")
	return v.showCampaigns(t, wrong)
}

// enterLarge waits for a slot for a large form and extends its time limit. Anyone can create companies, so the form of
// a company that cannot send is never large.
func (v *visit) enterLarge(t tenant) (leave func(), err error) {
	r := v.c.Request
	if r.ContentLength >= 0 && r.ContentLength <= smallUpload || !campaigns.MaySend(&t.Company) {
		r.Body = http.MaxBytesReader(v.c.Writer, r.Body, smallUpload)
		return func() {}, nil
	}
	if leave, err = v.d.large.Enter(v.ctx(), t.Company.ID); err != nil {
		return nil, v.busy(http.StatusTooManyRequests)
	}
	control, end := http.NewResponseController(v.c.Writer), time.Now().Add(uploadTime)
	if err := errors.Join(control.SetReadDeadline(end), control.SetWriteDeadline(end)); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// leaveOut is POST /campaigns/drafts/:draft/without: it removes the lines of one problem from the campaign. It sends
// nothing: the page then shows the remaining lines and their price.
func (d *Dashboard) leaveOut(v *visit, _ tenant, made *campaigns.Campaign) error {
	left, err := d.rooms.Campaigns.LeaveOut(v.ctx(), made, v.form().Value("what"))
	flash := "flash.campaign.without"
	if !left {
		flash = ""
	}
	return v.done(err, draftPath(made), flash)
}

// sendCampaign is POST /campaigns/drafts/:draft/send: it sends the first part.
func (d *Dashboard) sendCampaign(v *visit, t tenant, made *campaigns.Campaign) error {
	f := v.form()
	later := f.later("send_at")
	var p *accounts.Principal
	var err error
	if f.ok() {
		p, err = v.sender(t)
	}
	ctx := context.WithoutCancel(v.ctx()) // the campaign is sent even if the browser disconnects
	if err == nil && f.ok() {
		var marked bool
		if marked, err = d.rooms.Campaigns.Recheck(ctx, v.lang, p, made); marked { // the page lists them now
			f.notice("campaign.changed")
		}
	}
	var sums campaigns.Sums
	if err == nil {
		sums, err = d.rooms.Campaigns.Sums(ctx, made)
	}
	if err != nil {
		return err
	}
	if f.ok() && (sums.Faults+sums.OptedOut > 0 || sums.Recipients == 0) { // the page has no button for it
		f.notice("campaign.hindered")
	}
	if f.ok() {
		err = v.notSent(d.rooms.Campaigns.Begin(ctx, p, made, sums, later))
	}
	switch {
	case err != nil:
		return err
	case !f.ok():
		return d.checked(v, t, made)
	}
	flash := "flash.campaign"
	if b, _ := d.rooms.Messages.BatchByULID(ctx, t.company(), made.ID); b.State() == messages.BatchScheduled { // also by quiet hours
		flash = "flash.campaign.later"
	}
	return v.redirect("/batches/"+made.ID.String(), flash)
}

// later parses a field with a future day and time in Bujumbura; empty is the zero time.
func (f *form) later(field string) time.Time {
	at, now := f.instant(field, "draft.later.wrong"), postgres.Now()
	switch {
	case !at.IsZero() && at.Before(now.Add(-time.Minute)): // the current minute counts as now
		f.refuse(field, "draft.later.wrong")
	case at.After(now.Add(sms.MaxAhead)):
		f.refuse(field, "draft.later.far")
	}
	return at
}

// dropCampaign is POST /campaigns/drafts/:draft/drop.
func (d *Dashboard) dropCampaign(v *visit, _ tenant, made *campaigns.Campaign) error {
	dropped, err := d.rooms.Campaigns.Drop(v.ctx(), made)
	if err == nil && !dropped {
		return v.redirect(draftPath(made), "")
	}
	return v.done(err, "/campaigns", "flash.campaign.dropped")
}
