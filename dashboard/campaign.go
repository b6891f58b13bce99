package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
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
	maxUpload        = maxSheet + maxForm // octets of a form with a file
	uploadMemory     = maxUpload          // all of it: nothing is written to disk
	uploadsOfAll     = 16                 // files that are read at the same time, some megabytes each
	uploadsOfCompany = 2
	previewed        = 5  // messages that a page shows
	listed           = 20 // campaigns that a page shows
)

type campaignsPage struct {
	Senders   []accounts.Sender // approved ones
	Sender    string            // as chosen
	Company   accounts.Company
	Wrong     lineErrors
	Campaigns []messages.BatchRecord
	Most      int
	Example   string
}

// campaigns is GET /campaigns.
func (d *Dashboard) campaigns(v *visit, t tenant) {
	if data, ok := v.campaignsPage(t); ok {
		v.render(http.StatusOK, "campaigns", data)
	}
}

func (v *visit) campaignsPage(t tenant) (data campaignsPage, ok bool) {
	data = campaignsPage{Company: t.Company, Most: maxRecipients,
		Example: v.lang.T("campaign.example.head") + "\n+257 79 12 34 00;Aline;25 000\n71 23 45 00;Éric;18 500\n"}
	senders, err := v.d.rooms.Accounts.SendersOf(v.ctx(), t.Company.ID)
	if err == nil {
		data.Campaigns, err = v.d.rooms.Messages.Batches(v.ctx(), t.company(), listed)
	}
	if err != nil {
		v.handleError("reading campaigns", err)
		return data, false
	}
	for _, s := range senders {
		if s.Approved {
			data.Senders = append(data.Senders, s)
		}
	}
	return data, true
}

// checkCampaign is POST /campaigns: it reads and checks a file. Nothing is charged.
func (d *Dashboard) checkCampaign(v *visit, t tenant) {
	if !d.uploads.enter(t.company()) {
		v.busy(http.StatusTooManyRequests)
		return
	}
	defer d.uploads.leave(t.company())
	f, file := v.upload()
	if !v.takeTurn() {
		return
	}
	data, ok := v.campaignsPage(t)
	if !ok {
		return
	}
	data.Sender = f.Value("sender")
	known := false
	for _, s := range data.Senders {
		known = known || s.Name == data.Sender
	}
	if !known {
		f.refuse("sender", "campaign.sender.wrong")
	}
	text := f.required("template")
	switch {
	case !utf8.ValidString(text) || hasControl(text):
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
		v.renderForm("campaigns", data, f)
		return
	}
	recipients, wrong := v.readRecipients(&t.Company, sms.ParseTemplate(text), file)
	if len(wrong.List) > 0 {
		data.Wrong = wrong
		f.notice("campaign.wrong")
		v.renderForm("campaigns", data, f)
		return
	}
	id, err := d.keepDraft(v.ctx(), t, draft{Sender: data.Sender, Template: text, Recipients: recipients})
	if err != nil {
		v.handleError("keeping a campaign", err)
		return
	}
	v.redirect("/campaigns/drafts/"+id.String(), "")
}

// hasControl reports whether a text has control characters, which no message may have. Browsers write line breaks as CR LF.
func hasControl(text string) bool {
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\r' || r == 0x7f {
			return true
		}
	}
	return false
}

// upload reads a form with a file. When it cannot, it writes the response and returns nil.
func (v *visit) upload() (*form, []byte) {
	if err := v.c.Request.ParseMultipartForm(uploadMemory); err != nil {
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok && large != nil {
			v.renderError(http.StatusRequestEntityTooLarge)
		} else {
			v.renderError(http.StatusForbidden)
		}
		return nil, nil
	}
	defer func() { _ = v.c.Request.MultipartForm.RemoveAll() }()
	f := v.form()
	part, _, err := v.c.Request.FormFile("file")
	if err != nil {
		return f, nil
	}
	defer func() { _ = part.Close() }()
	file, err := io.ReadAll(io.LimitReader(part, maxSheet+1))
	if err != nil {
		v.handleError("reading a file", err)
		return nil, nil
	}
	return f, file
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
	All   int
	First []place // at most maxLineErrors of them
	More  int
	Every bool // nobody is left without them
}

// place is a recipient and their place in the file, from 1.
type place struct {
	Place  int
	Number sms.Number
}

// checked is GET /campaigns/drafts/:draft.
func (d *Dashboard) checked(v *visit, t tenant) {
	if data, ok := v.draftPage(t); ok {
		v.render(http.StatusOK, "draft", data)
	}
}

func (v *visit) draftPage(t tenant) (data draftPage, ok bool) {
	made, ok := v.draft(t)
	if !ok {
		return data, false
	}
	data = draftPage{ID: made.ID.String(), Sender: made.Sender, Recipients: len(made.Recipients), Ready: t.Company.Approved && t.Company.Verified}
	template := sms.ParseTemplate(made.Template)
	seen := map[sms.Number]bool{}
	for i, r := range made.Recipients {
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
	barred, err := v.d.optedOut(v.ctx(), t.company(), &made)
	if err != nil {
		v.handleError("looking for opt-outs", err)
		return data, false
	}
	for i, r := range made.Recipients {
		if barred[i] && len(data.OptedOut.First) < maxLineErrors {
			data.OptedOut.First = append(data.OptedOut.First, place{i + 1, r.Number})
		}
	}
	data.OptedOut.All, data.OptedOut.Every = len(barred), len(barred) == len(made.Recipients)
	data.OptedOut.More = len(barred) - len(data.OptedOut.First)
	if data.Credits, err = v.d.rooms.Ledger.Balance(v.ctx(), t.Company.ID); err != nil {
		v.handleError("reading a balance", err)
		return data, false
	}
	data.Enough = data.Credits >= int64(data.Segments)
	return data, true
}

// draft returns the draft that the path names. When there is none, it writes the response and returns false.
func (v *visit) draft(t tenant) (made draft, ok bool) {
	id, ok := v.ulid("draft")
	if !ok {
		return made, false
	}
	made, err := v.d.draftOf(v.ctx(), t.company(), id)
	if err != nil {
		v.handleError("reading a campaign", err)
		return made, false
	}
	return made, true
}

// sendCampaign is POST /campaigns/drafts/:draft/send.
func (d *Dashboard) sendCampaign(v *visit, t tenant) {
	made, ok := v.draft(t)
	if !ok {
		return
	}
	f := v.form()
	later := f.later("send_at")
	if !f.ok() {
		if data, ok := v.draftPage(t); ok {
			v.renderForm("draft", data, f)
		}
		return
	}
	if d.rooms.Sends != nil && !d.rooms.Sends.Allow(v.ctx(), t.User.ID).Allowed {
		if data, ok := v.draftPage(t); ok {
			f.notice("send.often")
			v.renderPage(http.StatusTooManyRequests, "draft", data, f)
		}
		return
	}
	p, err := d.rooms.Accounts.PrincipalOf(v.ctx(), t.User.ID)
	if err != nil {
		v.handleError("reading who sends", err)
		return
	}
	if p.Company == nil || p.Company.ID != t.Company.ID {
		v.renderError(http.StatusNotFound)
		return
	}
	// The campaign is sent even if the browser disconnects.
	answer, err := d.rooms.Intake.SendBatch(context.WithoutCancel(v.ctx()), p, made.request(later))
	var accepted struct {
		ID ulid.ULID `json:"batch_id"`
	}
	if err == nil {
		err = json.Unmarshal(answer.Body, &accepted)
	}
	_, refused := errors.AsType[sms.Refusal](err)
	switch {
	case err == nil:
		v.redirect("/batches/"+accepted.ID.String(), "flash.campaign")
	case refused:
		if data, ok := v.draftPage(t); ok {
			f.Notice = v.refusal(err)
			v.renderForm("draft", data, f)
		}
	case errors.Is(err, intake.ErrKeyInUse): // a second click: the first request is under way
		v.redirect("/campaigns/drafts/"+made.ID.String(), "flash.campaign.again")
	case errors.Is(err, intake.ErrOutcomeUnknown):
		d.log.Error("request failed: sending a campaign", "path", v.c.FullPath(), "error", err)
		v.renderWrong(http.StatusServiceUnavailable, "error.503.title", "campaign.unknown")
	default:
		v.handleError("sending a campaign", err)
	}
}

// longestAhead is how far in the future a campaign can be sent, as by the API (rule choices 12.2).
const longestAhead = 30 * 24 * time.Hour

// later reads a field with a day and time in Bujumbura that is not over; the zero time when it is empty.
func (f *form) later(field string) time.Time {
	value := f.Value(field)
	if value == "" {
		return time.Time{}
	}
	at, err := time.ParseInLocation("2006-01-02T15:04", value, bujumbura)
	if err != nil { // browsers may write seconds
		at, err = time.ParseInLocation("2006-01-02T15:04:05", value, bujumbura)
	}
	now := postgres.Now()
	switch {
	case err != nil || at.Before(now.Add(-time.Minute)): // this minute is now
		f.refuse(field, "draft.later.wrong")
	case at.After(now.Add(longestAhead)):
		f.refuse(field, "draft.later.far")
	}
	return at
}

// dropCampaign is POST /campaigns/drafts/:draft/drop.
func (d *Dashboard) dropCampaign(v *visit, t tenant) {
	made, ok := v.draft(t)
	if !ok {
		return
	}
	if err := d.dropDraft(v.ctx(), t.company(), made.ID); err != nil {
		v.handleError("dropping a campaign", err)
		return
	}
	v.redirect("/campaigns", "flash.campaign.dropped")
}

// refusals maps the reasons of refused sends to the keys of their texts.
var refusals = map[string]string{
	"company_not_approved": "campaign.refused.approved", "company_not_verified": "campaign.refused.verified", "sender_not_found": "campaign.refused.sender",
	"sender_not_approved": "campaign.refused.sender", "no_carrier": "campaign.refused.carrier", "empty": "campaign.refused.empty", "too_long": "campaign.refused.long",
	"insufficient_credits": "campaign.refused.credits", "missing_variables": "campaign.refused.variables",
	"daily_cap": "campaign.refused.cap", "opted_out": "campaign.refused.optedout",
}

// refusal returns the text of a refused send, in the user's language.
func (v *visit) refusal(err error) string {
	refused, ok := errors.AsType[sms.Refusal](err)
	if key := refusals[refused.Reason]; ok && key != "" {
		return v.lang.T(key)
	}
	return v.lang.T("campaign.refused.other", refused.Text)
}
