package dashboard

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/sms"
)

const (
	maxUpload        = maxSheet + maxForm // octets of a form with a file
	uploadsOfAll     = 128                // files that come at the same time, a megabyte each
	uploadsOfCompany = 2
	uploadsOfAddress = 8  // of one network address, where several companies may be
	previewed        = 5  // messages that a page shows
	listed           = 20 // campaigns that a page shows
)

type campaignsPage struct {
	Senders   []option // approved ones
	Company   accounts.Company
	Wrong     lineErrors
	Campaigns []messages.BatchRecord
	Most      int
	Example   string
}

// campaigns is GET /campaigns.
func (d *Dashboard) campaigns(v *visit, t tenant) error { return v.showCampaigns(t, lineErrors{}) }

func (v *visit) showCampaigns(t tenant, wrong lineErrors) (err error) {
	data := campaignsPage{Company: t.Company, Wrong: wrong, Most: maxRecipients,
		Example: v.lang.T("campaign.example.head") + "\n+257 79 12 34 00;Aline;25 000\n71 23 45 00;Éric;18 500\n"}
	if data.Senders, err = v.approvedSenders(t); err != nil {
		return err
	}
	data.Campaigns, err = v.d.rooms.Messages.Batches(v.ctx(), t.company(), listed)
	return v.page(err, "campaigns", data)
}

// approvedSenders returns the company's approved sender IDs as lines of a choice.
func (v *visit) approvedSenders(t tenant) (list []option, err error) {
	senders, err := v.d.rooms.Accounts.SendersOf(v.ctx(), t.Company.ID)
	for _, s := range senders {
		if s.Approved {
			list = append(list, option{s.Name, s.Name})
		}
	}
	return list, err
}

// checkCampaign is POST /campaigns: it reads and checks a file. Nothing is charged.
func (d *Dashboard) checkCampaign(v *visit, t tenant) error {
	leave, err := v.uploadTurn(t, d.uploaders)
	if err != nil {
		return err
	}
	defer leave()
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
	}
	if len(file) == 0 {
		f.refuse("file", "campaign.file.none")
	} else if len(file) > maxSheet {
		f.refuse("file", "campaign.file.large")
	}
	if !f.ok() {
		return d.campaigns(v, t)
	}
	recipients, wrong := v.readRecipients(&t.Company, sms.ParseTemplate(text), file)
	if len(wrong.List) > 0 {
		f.notice("campaign.wrong")
		return v.showCampaigns(t, wrong)
	}
	made := draft{ID: ulid.Make(), Name: name, Sender: sender, Template: text, Recipients: recipients}
	return v.done(d.keepDraft(v.ctx(), t, made), made.path(), "")
}

// uploadTurn takes a turn of the company and one of the network address, as the limiter has it, for a form with a file.
func (v *visit) uploadTurn(t tenant, addresses *throttle.Turns) (leave func(), err error) {
	leaveCompany, err := v.d.uploads.Enter(v.ctx(), t.Company.ID)
	if err != nil {
		return nil, v.busy(http.StatusTooManyRequests)
	}
	leaveAddress, err := addresses.Enter(v.ctx(), tryKey("upload", networkOf(v.c.ClientIP())))
	if err != nil {
		leaveCompany()
		return nil, v.busy(http.StatusTooManyRequests)
	}
	return func() { leaveAddress(); leaveCompany() }, nil
}

// upload reads a form with a file, and returns the file, one octet past most at the longest, and its name; nil when there is
// none. All of it is in memory: nothing is written to disk.
func (v *visit) upload(most int64) (file []byte, name string, err error) {
	if err := v.c.Request.ParseMultipartForm(most + maxForm); err != nil {
		return nil, "", unreadable(err)
	}
	defer func() { _ = v.c.Request.MultipartForm.RemoveAll() }()
	part, head, err := v.c.Request.FormFile("file")
	if err != nil { // no file
		return nil, "", nil //nolint:nilerr // the form is refused
	}
	defer func() { _ = part.Close() }()
	file, err = io.ReadAll(io.LimitReader(part, most+1))
	return file, head.Filename, err
}

type previewMessage struct {
	Number   sms.Number
	Text     string
	Size     sms.Size
	Encoding string
	Why      []string // characters that make it UCS-2
}

type draftPage struct {
	ID         string
	Name       string
	Sender     string
	Recipients int
	Segments   int
	Longest    int // segments of the longest
	Unicode    int // messages
	Credits    int64
	Enough     bool
	Ready      bool // the company may send it
	First      []previewMessage
	Repeated   int // recipients whose number occurs before in the file
	OptedOut   optedOut
}

// optedOut are the recipients of a campaign who want no messages from its sender ID. With them it cannot be sent.
type optedOut struct {
	firsts[place]

	All   int
	Every bool // nobody is left without them
}

// place is a recipient and their place in the file, from 1.
type place struct {
	Place  int
	Number sms.Number
}

// checked is GET /campaigns/drafts/:draft.
func (d *Dashboard) checked(v *visit, t tenant, made *draft) error {
	data := draftPage{ID: made.ID.String(), Name: made.Name, Sender: made.Sender, Recipients: len(made.Recipients), Ready: t.Company.Approved && t.Company.Verified}
	barred, err := d.optedOut(v.ctx(), t.company(), made)
	if err != nil {
		return err
	}
	template := sms.ParseTemplate(made.Template)
	seen := map[sms.Number]bool{}
	for i, r := range made.Recipients {
		if barred[i] {
			data.OptedOut.add(place{i + 1, r.Number})
		}
		if seen[r.Number] {
			data.Repeated++
		}
		seen[r.Number] = true
		text := intake.Preview(&t.Company, template.Render(r.Variables))
		size := sms.Measure(text)
		data.Segments += size.Segments
		data.Longest = max(data.Longest, size.Segments)
		if size.Encoding == sms.UCS2 {
			data.Unicode++
		}
		if i < previewed {
			m := previewMessage{Number: r.Number, Text: text, Size: size, Encoding: "GSM-7"}
			if size.Encoding == sms.UCS2 {
				m.Encoding, m.Why = "UCS-2", sms.UnicodeCharacters(text)
			}
			data.First = append(data.First, m)
		}
	}
	data.OptedOut.All, data.OptedOut.Every = len(barred), len(barred) == len(made.Recipients)
	if data.Credits, err = d.rooms.Ledger.Balance(v.ctx(), t.Company.ID); err != nil {
		return err
	}
	data.Enough = data.Credits >= int64(data.Segments)
	return v.render("draft", data)
}

// draft returns the draft that the path names.
func (v *visit) draft(t tenant) (draft, error) {
	return v.d.draftOf(v.ctx(), t.company(), v.ulid("draft"))
}

// sendCampaign is POST /campaigns/drafts/:draft/send.
func (d *Dashboard) sendCampaign(v *visit, t tenant) error {
	made, err := v.draft(t)
	if err != nil {
		return err
	}
	f := v.form()
	later := f.later("send_at")
	var p *accounts.Principal
	if f.ok() {
		p, err = v.sender(t)
	}
	switch {
	case err != nil:
		return err
	case !f.ok():
		return d.checked(v, t, &made)
	}
	// The campaign is sent even if the browser disconnects.
	answer, err := d.rooms.Intake.SendBatch(context.WithoutCancel(v.ctx()), p, made.request(later))
	if err == nil {
		batch, err := batchOf(answer.Body)
		flash := "flash.campaign"
		if b, _ := d.rooms.Messages.BatchByULID(v.ctx(), t.company(), batch); b.State() == messages.BatchScheduled { // also by quiet hours
			flash = "flash.campaign.later"
		}
		return v.done(err, "/batches/"+batch.String(), flash)
	}
	if why := v.notSent(err); why != nil {
		return why
	}
	if refusal, refused := errors.AsType[sms.Refusal](err); refused && refusal.Reason == intake.RefuseOptedOut.Reason {
		f.notice("campaign.optedout") // while the user looked at the page, which lists them now
	}
	return d.checked(v, t, &made)
}

// longestAhead is how far in the future a campaign can be sent, as by the API (rule choices 12.2).
const longestAhead = 30 * 24 * time.Hour

// later reads a field with a day and time in Bujumbura that is not over; the zero time when it is empty.
func (f *form) later(field string) time.Time {
	at, now := f.instant(field, "draft.later.wrong"), postgres.Now()
	switch {
	case !at.IsZero() && at.Before(now.Add(-time.Minute)): // this minute is now
		f.refuse(field, "draft.later.wrong")
	case at.After(now.Add(longestAhead)):
		f.refuse(field, "draft.later.far")
	}
	return at
}

// dropCampaign is POST /campaigns/drafts/:draft/drop.
func (d *Dashboard) dropCampaign(v *visit, t tenant, made *draft) error {
	return v.done(d.dropDraft(v.ctx(), t.company(), made.ID), "/campaigns", "flash.campaign.dropped")
}
