package sending

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/campaigns"
	"intumwa/dashboard/web"
	"intumwa/intake"
	"intumwa/messages"
	"intumwa/sms"
)

// text returns a field with a message's text. Browsers send line breaks as CR LF; handsets need only LF.
func text(f *web.Form, field string) string {
	text := strings.ReplaceAll(f.Value(field), "\r\n", "\n")
	switch {
	case strings.TrimSpace(text) == "" || strings.IndexByte(text, 0) >= 0:
		f.Refuse(field, "error.required")
	case !utf8.ValidString(text):
		f.Refuse(field, "send.invalid")
	case utf8.RuneCountInString(text) > sms.MaxText:
		f.Refuse(field, "send.long", sms.MaxText)
	}
	return text
}

// sender returns a field with a sender ID.
func sender(f *web.Form, field string) string {
	name := f.Required(field)
	if !sms.ValidSender(name) {
		f.Refuse(field, "send.sender")
	}
	return name
}

// costCenter returns an optional field with a cost centre.
func costCenter(f *web.Form, field string) string {
	label := strings.TrimSpace(f.Value(field))
	if utf8.RuneCountInString(label) > sms.MaxLabel || !sms.IsPrintable(label) {
		f.Refuse(field, "costcenter.wrong", sms.MaxLabel)
	}
	return label
}

// send sends a form's message through intake, as the API does. [intake.Intake.Answered] finds the response by the name
// of the form's key. On a refusal the form has the reason.
func (ps *Pages) send(v *web.Visit, t web.Tenant, req intake.Single) (id ulid.ULID, err error) {
	// it is sent even if the browser disconnects
	f, ctx := v.Form(), intake.WithChannel(context.WithoutCancel(v.Ctx()), messages.Page)
	p, err := ps.sender(v, t)
	if err != nil || !f.OK() {
		return id, err
	}
	request := sha256.Sum256(
		[]byte(strings.Join([]string{v.C.FullPath(), req.Sender, string(req.Number), req.Message, req.CostCenter}, "\x00")))
	req.Key = &intake.Key{Name: web.KeyPrefix + f.FormKey(), Request: request}
	answer, err := ps.Deps.Intake.Send(ctx, p, req)
	if err != nil {
		return id, ps.notSent(v, err)
	}
	var accepted intake.Accepted
	err = json.Unmarshal(answer.Body, &accepted)
	return accepted.ID, err
}

// notSent denies the form of a message or campaign that intake has not accepted, with the reason. It returns other
// errors.
func (ps *Pages) notSent(v *web.Visit, err error) error {
	f := v.Form()
	refusal, refused := errors.AsType[sms.Refusal](err)
	switch {
	case refused:
		setRefusal(f, refusal)
	case errors.Is(err, intake.ErrKeyReused): // changed and submitted again, for example after the browser's back button
		f.Values.Set("key", web.NewFormKey())
		f.Deny(http.StatusConflict, "send.changed")
	case errors.Is(err, intake.ErrKeyInUse) || errors.Is(err, campaigns.ErrTaken):
		f.Deny(http.StatusConflict, "send.underway")
	case errors.Is(err, campaigns.ErrChanged): // by the other of two clicks, or by another person
		f.Deny(http.StatusConflict, "campaign.changed.meanwhile")
	case errors.Is(err, intake.ErrUnavailable):
		ps.Log.Error("request failed: accepting a message", "event", "page_send_failed", "path", v.C.FullPath(), "error", err)
		f.Deny(http.StatusServiceUnavailable, "send.unavailable")
		if errors.Is(err, intake.ErrOutcomeUnknown) {
			f.Deny(http.StatusServiceUnavailable, "send.unknown")
		}
	default:
		return err
	}
	return nil
}

// Reply is a form for a message to a number that is known.
type Reply struct {
	From    []web.Option // approved sender IDs; none: nothing can be sent
	Measure textSize
}

// Reply returns the form, with the fields sender and message. from is the sender that is offered first, if it is
// approved.
func (ps *Pages) Reply(v *web.Visit, t web.Tenant, from string) (any, error) {
	f := v.Form()
	f.FormKey()
	senders, err := ps.approvedSenders(v, t)
	if err != nil {
		return nil, err
	}
	if f.Value("sender") == "" && web.Among(senders, from) {
		f.Values.Set("sender", from)
	}
	credits, err := ps.Deps.Ledger.Balance(v.Ctx(), t.Company.ID)
	text := strings.ToValidUTF8(strings.ReplaceAll(f.Value("message"), "\r\n", "\n"), "\uFFFD")
	return Reply{From: senders, Measure: measureOf(&t.Company, text, f.Value("sender"), false, credits)}, err
}

// SendReply sends the message of a [Reply]. It returns false if the form says why not, or the message is only to be
// measured.
func (ps *Pages) SendReply(v *web.Visit, t web.Tenant, to sms.Number) (sent bool, err error) {
	f := v.Form()
	if f.Value("do") == "check" {
		return false, nil
	}
	req := intake.Single{Sender: sender(f, "sender"), Number: to, Message: text(f, "message")}
	if !f.OK() {
		return false, nil
	}
	_, err = ps.send(v, t, req)
	return err == nil && f.OK(), err
}

// sender returns the principal of a send, and denies the form above the user's limit.
func (ps *Pages) sender(v *web.Visit, t web.Tenant) (*accounts.Principal, error) {
	if sends := ps.Sends; sends != nil && !sends.Allow(v.Ctx(), t.User.ID).Allowed {
		v.Form().Deny(http.StatusTooManyRequests, "send.often")
		return nil, nil
	}
	return ps.principal(v, t)
}

// principal returns the user with the company's senders.
func (ps *Pages) principal(v *web.Visit, t web.Tenant) (*accounts.Principal, error) {
	p, err := ps.Deps.Holders.PrincipalOf(v.Ctx(), t.User.ID)
	if err == nil && (p.Company == nil || p.Company.ID != t.Company.ID) { // the user has left the company meanwhile
		err = web.ErrNotFound
	}
	return p, err
}

// refusedFields are the wrong fields of refused sends, by reason.
var refusedFields = map[string]string{"sender_not_found": "sender", "sender_not_approved": "sender",
	"sender_not_registered": "sender", "opted_out": "number", "no_carrier": "number", "empty": "message",
	"too_long": "message", "other_test_number": "number", "repeated_too_soon": "number", "repeated_too_often": "number",
	"number_limit": "number"}

// setRefusal sets the form's error to a business rule's refusal, at its field if the form has one.
func setRefusal(f *web.Form, r sms.Refusal) {
	f.Notice, f.Status = f.Visit.Lang.Refusal(r), http.StatusUnprocessableEntity
	if field := refusedFields[r.Reason]; f.Values.Has(field) {
		f.Errors[field], f.Notice = f.Notice, f.Visit.Lang.T("error.summary")
	}
}
