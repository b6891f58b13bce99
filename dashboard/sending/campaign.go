package sending

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/campaigns"
	"intumwa/campaigns/sheets"
	"intumwa/contacts"
	"intumwa/dashboard/numberfile"
	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

const listed = 20 // campaigns that a page shows

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
	Groups    []web.Tick // whom it goes to
	Without   []web.Tick // and who of them does not get it
	Fields    []string   // of contacts, for texts
}

// Campaigns is GET /campaigns.
func (ps *Pages) Campaigns(v *web.Visit, t web.Tenant) error {
	v.Parameters("groups") // one, whose page leads here
	return ps.showCampaigns(v, t, nil)
}

func (ps *Pages) showCampaigns(v *web.Visit, t web.Tenant, wrong []sheets.Problem) (err error) {
	most, size := campaigns.Limits(&t.Company)
	data := campaignsPage{Company: t.Company, Encodings: numberfile.Encodings(v.Lang), Again: v.C.Query("again") != "",
		Most:    most,
		MiB:     size >> 20,
		Example: v.Lang.T("campaign.example.head") + "\n+257 79 12 34 00;Aline;25 000\n71 23 45 00;Éric;18 500\n"}
	for _, problem := range wrong {
		data.Wrong.Add(problem)
	}
	if data.Senders, err = ps.approvedSenders(v, t); err != nil {
		return err
	}
	if err := ps.addGroups(v, t, &data); err != nil {
		return err
	}
	data.Campaigns, err = ps.Deps.Messages.Batches(v.Ctx(), t.CompanyID(), listed)
	return v.Page(err, "campaigns", data)
}

// addGroups adds the company's groups to the form.
func (ps *Pages) addGroups(v *web.Visit, t web.Tenant, to *campaignsPage) error {
	groups, err := ps.Deps.Contacts.Groups(v.Ctx(), t.Company.ID)
	if err != nil || len(groups) == 0 {
		return err
	}
	var list []web.Option
	for _, g := range groups {
		list = append(list, web.Option{Value: strconv.FormatInt(g.ID, 10),
			Text: g.Name + " (" + v.Lang.Number(g.Members) + ")"})
	}
	to.Groups, to.Without = v.Form().Ticks("groups", list), v.Form().Ticks("without", list)
	book, err := ps.Deps.Contacts.Book(v.Ctx(), t.Company.ID)
	to.Fields = append([]string{v.Lang.T("campaign.group.name")}, book.Fields...)
	return err
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

// CheckCampaign is POST /campaigns: it checks a file, or the members of groups, and charges nothing.
func (ps *Pages) CheckCampaign(v *web.Visit, t web.Tenant) error {
	_, most := campaigns.Limits(&t.Company)
	file, fileName, leave, err := numberfile.Read(v, &t.Company, most)
	defer leave()
	if err != nil {
		return err
	}
	senders, err := ps.approvedSenders(v, t)
	if err != nil {
		return err
	}
	f := v.Form()
	to := &contacts.Audience{Groups: f.IDs("groups"), Without: f.IDs("without")}
	if len(to.Groups) == 0 {
		to = nil
	} else if len(file) == 0 {
		if fileName, err = ps.groupNames(v, t, to.Groups); err != nil {
			return err
		}
		if fileName == "" { // somebody has deleted them
			f.Refuse("groups", "group.gone")
			return ps.Campaigns(v, t)
		}
	}
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
	var about sheets.Reading
	switch {
	case to != nil && len(file) > 0:
		f.Refuse("groups", "campaign.group.both")
	case to == nil && len(file) == 0 && f.Values.Has("without"):
		f.Refuse("groups", "campaign.group.none")
	case to == nil:
		about = numberfile.About(f, file, most)
	}
	if !f.OK() {
		return ps.Campaigns(v, t)
	}
	leaveBook, err := numberfile.Unpack(v, &t.Company, file)
	if err != nil {
		return err
	}
	defer leaveBook()
	p, err := ps.principal(v, t)
	if err != nil {
		return err
	}
	made := campaigns.Campaign{ID: ulid.Make(), Company: t.Company.ID, Name: name, Sender: sender, Template: text,
		CostCenter: costCenter, Audience: to}
	wrong, err := ps.keep(v, p.Company, &made, file, about)
	switch {
	case errors.Is(err, contacts.ErrNoGroup): // somebody has deleted it
		f.Refuse("groups", "group.gone")
	case err != nil:
		return err
	case len(wrong) == 0:
		return v.Redirect(draftPath(&made), "")
	case to != nil:
		f.Fail("campaign.group.wrong")
	default:
		f.Fail("campaign.wrong")
	}
	return ps.showCampaigns(v, t, wrong)
}

// keep stores a campaign with its rows, or returns what is wrong with them.
func (ps *Pages) keep(v *web.Visit, company *accounts.Company, made *campaigns.Campaign, file []byte,
	about sheets.Reading) ([]sheets.Problem, error) {
	if made.Audience != nil {
		return ps.Deps.Campaigns.KeepGroups(v.Ctx(), v.Lang, company, made)
	}
	rows, wrong := ps.Deps.Campaigns.Open(v.Lang, company, made.Sender, made.Template, file, about)
	if len(wrong) > 0 {
		return wrong, nil
	}
	made.Reading = rows.Reading()
	err := ps.Deps.Campaigns.Keep(v.Ctx(), made, rows.Next)
	if _, bad := errors.AsType[*sheets.Error](err); bad {
		return []sheets.Problem{sheets.ProblemOf(v.Lang, err)}, nil
	}
	return nil, err
}

// groupNames returns the names of groups as one line.
func (ps *Pages) groupNames(v *web.Visit, t web.Tenant, ids []int64) (string, error) {
	groups, err := ps.Deps.Contacts.Groups(v.Ctx(), t.Company.ID)
	var names []string
	for _, g := range groups {
		if slices.Contains(ids, g.ID) {
			names = append(names, g.Name)
		}
	}
	const longest = 150
	line := []rune(strings.Join(names, ", "))
	if len(line) > longest {
		line = append(line[:longest], '…')
	}
	return string(line), err
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
