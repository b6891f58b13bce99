package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/campaigns"
	"intumwa/intake"
	"intumwa/messages"
	"intumwa/sms"
)

// keyPrefix separates the idempotency keys of forms from those of the user's API requests.
const keyPrefix = "dashboard:"

// newFormKey returns a new key for a form: submitting the form twice sends one message.
func newFormKey() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

func isFormKey(key string) bool {
	return len(key) == 32 && strings.Trim(key, "0123456789abcdef") == ""
}

// formKey returns the field "key", or a new key without one.
func (f *form) formKey() string {
	if key := f.Value("key"); isFormKey(key) {
		return key
	}
	key := newFormKey()
	f.values.Set("key", key)
	return key
}

// text returns a field with a message's text. Browsers send line breaks as CR LF; handsets need only LF.
func (f *form) text(field string) string {
	text := strings.ReplaceAll(f.Value(field), "\r\n", "\n")
	switch {
	case strings.TrimSpace(text) == "" || strings.IndexByte(text, 0) >= 0:
		f.refuse(field, "error.required")
	case !utf8.ValidString(text):
		f.refuse(field, "send.invalid")
	case utf8.RuneCountInString(text) > sms.MaxText:
		f.refuse(field, "send.long", sms.MaxText)
	}
	return text
}

// sender returns a field with a sender ID.
func (f *form) sender(field string) string {
	name := f.required(field)
	if !sms.ValidSender(name) {
		f.refuse(field, "send.sender")
	}
	return name
}

// costCenter returns an optional field with a cost centre.
func (f *form) costCenter(field string) string {
	label := strings.TrimSpace(f.Value(field))
	if utf8.RuneCountInString(label) > sms.MaxLabel || !sms.IsPrintable(label) {
		f.refuse(field, "costcenter.wrong", sms.MaxLabel)
	}
	return label
}

// send sends a form's message through intake, as the API does. [intake.Intake.Answered] finds the response by the name
// of the form's key. On a refusal the form has the reason.
func (v *visit) send(t tenant, req intake.Single) (id ulid.ULID, err error) {
	d, f, ctx := v.d, v.form(), intake.WithChannel(context.WithoutCancel(v.ctx()), messages.Page) // it is sent even if the browser disconnects
	p, err := v.sender(t)
	if err != nil || !f.ok() {
		return id, err
	}
	request := sha256.Sum256([]byte(strings.Join([]string{v.c.FullPath(), req.Sender, string(req.Number), req.Message, req.CostCenter}, "\x00")))
	req.Key = &intake.Key{Name: keyPrefix + f.formKey(), Request: request}
	answer, err := d.rooms.Intake.Send(ctx, p, req)
	if err != nil {
		return id, v.notSent(err)
	}
	var accepted intake.Accepted
	err = json.Unmarshal(answer.Body, &accepted)
	return accepted.ID, err
}

// notSent denies the form of a message or campaign that intake has not accepted, with the reason. It returns other
// errors.
func (v *visit) notSent(err error) error {
	f := v.form()
	refusal, refused := errors.AsType[sms.Refusal](err)
	switch {
	case refused:
		f.refused(refusal)
	case errors.Is(err, intake.ErrKeyReused): // changed and submitted again, for example after the browser's back button
		f.values.Set("key", newFormKey())
		f.deny(http.StatusConflict, "send.changed")
	case errors.Is(err, intake.ErrKeyInUse) || errors.Is(err, campaigns.ErrTaken):
		f.deny(http.StatusConflict, "send.underway")
	case errors.Is(err, intake.ErrUnavailable):
		v.d.log.Error("request failed: accepting a message", "event", "page_send_failed", "path", v.c.FullPath(), "error", err)
		f.deny(http.StatusServiceUnavailable, "send.unavailable")
		if errors.Is(err, intake.ErrOutcomeUnknown) {
			f.deny(http.StatusServiceUnavailable, "send.unknown")
		}
	default:
		return err
	}
	return nil
}

// sender returns the principal of a send, and denies the form above the user's limit.
func (v *visit) sender(t tenant) (*accounts.Principal, error) {
	if sends := v.d.rooms.Sends; sends != nil && !sends.Allow(v.ctx(), t.User.ID).Allowed {
		v.form().deny(http.StatusTooManyRequests, "send.often")
		return nil, nil
	}
	return v.principal(t)
}

// principal returns the user with the company's senders.
func (v *visit) principal(t tenant) (*accounts.Principal, error) {
	p, err := v.d.rooms.Holders.PrincipalOf(v.ctx(), t.User.ID)
	if err == nil && (p.Company == nil || p.Company.ID != t.Company.ID) { // the user has left the company meanwhile
		err = errNotFound
	}
	return p, err
}

// refusedFields are the wrong fields of refused sends, by reason.
var refusedFields = map[string]string{"sender_not_found": "sender", "sender_not_approved": "sender", "sender_not_registered": "sender", "opted_out": "number", "no_carrier": "number", "empty": "message",
	"too_long": "message", "other_test_number": "number", "repeated_too_soon": "number", "repeated_too_often": "number", "number_limit": "number"}

// refused sets the form's error to a business rule's refusal, at its field if the form has one.
func (f *form) refused(r sms.Refusal) {
	f.Notice, f.status = f.v.lang.Refusal(r), http.StatusUnprocessableEntity
	if field := refusedFields[r.Reason]; f.values.Has(field) {
		f.wrong[field], f.Notice = f.Notice, f.v.lang.T("error.summary")
	}
}
