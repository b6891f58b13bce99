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

	"intumwa/intake"
	"intumwa/sms"
)

const (
	maxMessage = 600 // characters (rule api 8)
	maxSender  = 11
)

// keyPrefix is the prefix of the idempotency keys of forms, to keep them apart from those of the user's API requests.
const keyPrefix = "dashboard:"

// newFormKey returns a new key for a form, so that submitting it twice sends one message.
func newFormKey() string {
	var octets [16]byte
	_, _ = rand.Read(octets[:]) // never fails
	return hex.EncodeToString(octets[:])
}

func isFormKey(key string) bool {
	return len(key) == 32 && strings.Trim(key, "0123456789abcdef") == ""
}

// formKey returns the field "key", or a new key when the field has none.
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
	case utf8.RuneCountInString(text) > maxMessage:
		f.refuse(field, "send.long", maxMessage)
	}
	return text
}

// sender returns a field with a sender ID.
func (f *form) sender(field string) string {
	name := f.required(field)
	letters := strings.TrimFunc(name, func(r rune) bool { return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' })
	if len(name) > maxSender || letters != "" {
		f.refuse(field, "send.sender")
	}
	return name
}

// send sends a form's message through intake, as the API does. [intake.Intake.Answered] finds the answer by the name of
// the form's key. When ok is false, either the form has the error and status is the status to render it with, or status
// is 0 and the response was written.
func (v *visit) send(t tenant, f *form, req intake.Single) (id ulid.ULID, status int, ok bool) {
	d, ctx := v.d, context.WithoutCancel(v.ctx())
	if d.rooms.Sends != nil && !d.rooms.Sends.Allow(v.ctx(), t.User.ID).Allowed {
		f.notice("send.often")
		return id, http.StatusTooManyRequests, false
	}
	p, err := d.rooms.Accounts.PrincipalOf(ctx, t.User.ID)
	if err != nil {
		v.handleError("reading who sends", err)
		return id, 0, false
	}
	if p.Company == nil || p.Company.ID != t.Company.ID { // the company has changed its owner meanwhile
		v.renderError(http.StatusNotFound)
		return id, 0, false
	}
	request := sha256.Sum256([]byte(strings.Join([]string{v.c.FullPath(), req.Sender, string(req.Number), req.Message}, "\x00")))
	req.Key = &intake.Key{Name: keyPrefix + f.formKey(), Request: request}
	answer, err := d.rooms.Intake.Send(ctx, p, req)
	refusal, refused := errors.AsType[sms.Refusal](err)
	switch {
	case err == nil:
		var accepted intake.Accepted
		if err := json.Unmarshal(answer.Body, &accepted); err != nil {
			v.handleError("reading an answer", err)
			return id, 0, false
		}
		return accepted.ID, 0, true
	case refused:
		f.refused(refusal, req)
		return id, http.StatusUnprocessableEntity, false
	case errors.Is(err, intake.ErrKeyReused): // changed and submitted again, for example after going back in the browser
		f.values.Set("key", newFormKey())
		f.notice("send.changed")
		return id, http.StatusConflict, false
	case errors.Is(err, intake.ErrKeyInUse):
		f.notice("send.underway")
		return id, http.StatusConflict, false
	case errors.Is(err, intake.ErrUnavailable):
		d.log.Error("request failed: accepting a message", "path", v.c.FullPath(), "error", err)
		f.notice("send.unavailable")
		if errors.Is(err, intake.ErrOutcomeUnknown) {
			f.notice("send.unknown")
		}
		return id, http.StatusServiceUnavailable, false
	}
	v.handleError("accepting a message", err)
	return id, 0, false
}

// refused sets the form's error to a business rule's refusal, in the user's language.
func (f *form) refused(r sms.Refusal, req intake.Single) {
	switch r.Reason {
	case "company_not_approved":
		f.notice("refusal.approved")
	case "sender_not_found":
		f.refuse("sender", "refusal.sender.unknown")
	case "sender_not_approved":
		f.refuse("sender", "refusal.sender.waiting")
	case intake.RefuseOptedOut.Reason:
		f.refuse("number", "refusal.optedout")
	case "no_carrier":
		f.refuse("number", "refusal.carrier")
	case "too_long":
		f.refuse("message", "refusal.long")
	case "no_test_number":
		f.notice("refusal.testnumber")
	case "other_test_number":
		f.refuse("number", "refusal.othernumber")
	case "test_quota":
		f.notice("refusal.quota")
	case "insufficient_credits":
		f.notice("refusal.credits", sms.Measure(req.Message).Segments)
	case "daily_cap":
		f.notice("refusal.cap")
	case "repeated_too_soon", "repeated_too_often", "number_limit":
		f.refuse("number", "refusal.repeated")
	default:
		f.Notice = r.Text
	}
}
