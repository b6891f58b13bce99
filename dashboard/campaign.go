package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

const (
	maxUpload   = maxSheet + maxForm // bytes of a form with a file
	smallUpload = maxSmall + maxForm // of a small one
	uploadTime  = 2 * time.Minute    // for receiving and checking a large file
	listed      = 20                 // campaigns that a page shows
)

type campaignsPage struct {
	Senders   []option // approved ones
	Encodings []option
	Again     bool // a file was read wrongly
	Company   accounts.Company
	Wrong     lineErrors
	Campaigns []messages.BatchRecord
	Most      int
	MiB       int // of a file
	Example   string
}

// campaigns is GET /campaigns.
func (d *Dashboard) campaigns(v *visit, t tenant) error { return v.showCampaigns(t, lineErrors{}) }

func (v *visit) showCampaigns(t tenant, wrong lineErrors) (err error) {
	data := campaignsPage{Company: t.Company, Wrong: wrong, Encodings: encodings(v.lang), Again: v.c.Query("again") != "", Most: maxRecipientsOf(&t.Company), MiB: maxSheetOf(&t.Company) >> 20,
		Example: v.lang.T("campaign.example.head") + "\n+257 79 12 34 00;Aline;25 000\n71 23 45 00;Éric;18 500\n"}
	if data.Senders, err = v.approvedSenders(t); err != nil {
		return err
	}
	data.Campaigns, err = v.d.rooms.Messages.Batches(v.ctx(), t.company(), listed)
	return v.page(err, "campaigns", data)
}

// approvedSenders returns the approved sender IDs as options.
func (v *visit) approvedSenders(t tenant) (list []option, err error) {
	senders, err := v.d.rooms.Accounts.SendersOf(v.ctx(), t.Company.ID)
	for _, s := range senders {
		if s.Approved {
			list = append(list, option{s.Name, s.Name})
		}
	}
	return list, err
}

// checkCampaign is POST /campaigns: it reads and checks a file, and charges nothing.
func (d *Dashboard) checkCampaign(v *visit, t tenant) error {
	leave, err := v.uploadTurn(t, d.uploaders)
	if err != nil {
		return err
	}
	defer leave()
	leaveLarge, err := v.enterLarge(t)
	if err != nil {
		return err
	}
	defer leaveLarge()
	file, fileName, err := v.upload(maxSheet)
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
	name, sender, text := f.name("name"), f.Value("sender"), f.required("template")
	if !among(senders, sender) {
		f.refuse("sender", "campaign.sender.wrong")
	}
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' || r == 0x7f }):
		f.refuse("template", "campaign.template.octets")
	case utf8.RuneCountInString(text) > maxTemplate:
		f.refuse("template", "campaign.template.long", maxTemplate)
	default:
		if near, line, column, found := sms.FirstBrace(text); found {
			f.refuse("template", "campaign.template.brace", near, line, column)
		}
	}
	about := reading{Encoding: f.Value("encoding"), Numbers: strings.TrimSpace(f.Value("numbers"))}
	if !among(encodings(v.lang), about.Encoding) {
		f.refuse("encoding", "campaign.encoding.wrong")
	}
	if len(file) == 0 {
		f.refuse("file", "campaign.file.none")
	} else if most := maxSheetOf(&t.Company); len(file) > most {
		f.refuse("file", "campaign.file.large", most>>20)
	}
	if !f.ok() {
		return d.campaigns(v, t)
	}
	if _, isBook := bookKind(file); isBook {
		leaveBook, err := v.heavyTurn(t)
		if err != nil {
			return err
		}
		defer leaveBook()
	}
	rows, wrong := v.readRows(&t.Company, text, file, about)
	if len(wrong.List) == 0 {
		made := draft{ID: ulid.Make(), Company: t.Company.ID, Name: name, Sender: sender, Template: text, Reading: rows.reading()}
		err = d.keepDraft(v.ctx(), &made, rows.row)
		if _, bad := errors.AsType[*sheetError](err); !bad {
			return v.done(err, made.path(), "")
		}
		wrong.add(v.fileError(err))
	}
	f.notice("campaign.wrong")
	return v.showCampaigns(t, wrong)
}

// maxSheetOf returns the maximum size of a company's file in bytes.
func maxSheetOf(company *accounts.Company) int {
	if sends(company) {
		return maxSheet
	}
	return maxSmall
}

// enterLarge waits for a slot for a large form and extends its time limit. Anyone can create companies, so the form of
// a company that cannot send is never large.
func (v *visit) enterLarge(t tenant) (leave func(), err error) {
	r := v.c.Request
	if r.ContentLength >= 0 && r.ContentLength <= smallUpload || !sends(&t.Company) {
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
func (d *Dashboard) leaveOut(v *visit, _ tenant, made *draft) error {
	which, known := hindrances[v.form().Value("what")]
	if !known {
		return errNotFound
	}
	left, err := d.leaveOutRows(v.ctx(), made, which)
	flash := "flash.campaign.without"
	if !left {
		flash = ""
	}
	return v.done(err, made.path(), flash)
}

// sendCampaign is POST /campaigns/drafts/:draft/send: it sends the first part.
func (d *Dashboard) sendCampaign(v *visit, t tenant, made *draft) error {
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
		if marked, err = d.markOptedOut(ctx, made); marked { // some opted out meanwhile; the page lists them now
			f.notice("campaign.optedout")
		}
	}
	var sums draftSums
	if err == nil {
		sums, err = d.sumsOf(ctx, made)
	}
	if err != nil {
		return err
	}
	if f.ok() && (sums.Faults+sums.OptedOut > 0 || sums.Recipients == 0) { // the page has no button for it
		f.notice("campaign.hindered")
	}
	if f.ok() {
		err = d.begin(ctx, v, t, p, made, &sums, later)
	}
	switch {
	case err != nil:
		return err
	case !f.ok():
		return d.checked(v, t, made)
	}
	d.wakeParts()
	flash := "flash.campaign"
	if b, _ := d.rooms.Messages.BatchByULID(ctx, t.company(), made.ID); b.State() == messages.BatchScheduled { // also by quiet hours
		flash = "flash.campaign.later"
	}
	return v.redirect("/batches/"+made.ID.String(), flash)
}

// begin sends the first part of a campaign. On a refusal the form has the reason.
func (d *Dashboard) begin(ctx context.Context, v *visit, t tenant, p *accounts.Principal, made *draft, sums *draftSums, later time.Time) error {
	if sums.Recipients > partSize { // intake sees only the first part
		balance, err := d.rooms.Ledger.Balance(ctx, t.Company.ID)
		switch {
		case err != nil:
			return err
		case balance < int64(sums.Segments):
			v.form().refused(intake.RefuseCredits("batch", strconv.Itoa(sums.Segments)))
			return nil
		}
	}
	taken, err := d.take(ctx, made, true)
	if err != nil {
		return err
	}
	if !taken { // the first of two clicks began it
		v.form().deny(http.StatusConflict, "send.underway")
		return nil
	}
	left, err := d.sendPart(ctx, p, made, 0, sums.Recipients, later)
	if err == nil {
		return d.parted(ctx, made, left)
	}
	// After an unknown outcome the further parts follow if the first was accepted.
	unknown := errors.Is(err, intake.ErrOutcomeUnknown)
	if back := d.giveBack(ctx, made, unknown, 0, ""); back != nil {
		d.log.Warn("a campaign could not be given back; it cannot be sent for a minute", "event", "campaign_not_given_back", "error", back)
	}
	return v.notSent(err)
}

// longestAhead is how far ahead a campaign can be scheduled, as in the API (rule choices 12.2).
const longestAhead = 30 * 24 * time.Hour

// later parses a field with a future day and time in Bujumbura; empty is the zero time.
func (f *form) later(field string) time.Time {
	at, now := f.instant(field, "draft.later.wrong"), postgres.Now()
	switch {
	case !at.IsZero() && at.Before(now.Add(-time.Minute)): // the current minute counts as now
		f.refuse(field, "draft.later.wrong")
	case at.After(now.Add(longestAhead)):
		f.refuse(field, "draft.later.far")
	}
	return at
}

// dropCampaign is POST /campaigns/drafts/:draft/drop.
func (d *Dashboard) dropCampaign(v *visit, _ tenant, made *draft) error {
	dropped, err := d.dropUnbegun(v.ctx(), made)
	if err == nil && !dropped {
		return v.redirect(made.path(), "")
	}
	return v.done(err, "/campaigns", "flash.campaign.dropped")
}
