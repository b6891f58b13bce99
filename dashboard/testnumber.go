package dashboard

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"

	"intumwa/accounts"
	"intumwa/messages"
	"intumwa/sms"
)

// testMode is an account's test mode (rule api 4.4).
type testMode struct {
	Number           sms.Number // empty: none was set yet
	Verified         bool
	Left             int // how often the verified number may still be replaced
	Quota, Remaining int // segments of the pool, and how many of them are left
	Sender           string
	Code             *sms.Status // status of the latest code's message, for a number that is not verified; nil: unknown
}

// CodeFailed reports whether the message with the code has failed.
func (m testMode) CodeFailed() bool { return m.Code != nil && *m.Code == sms.Failed }

// CodePending reports whether the message with the code is pending.
func (m testMode) CodePending() bool { return m.Code != nil && *m.Code == sms.Pending }

func (v *visit) testMode(company accounts.Company) (m testMode, err error) {
	d := v.d
	m = testMode{Left: d.opts.Replacements, Quota: d.opts.TestQuota, Sender: d.opts.TestSender}
	number, err := d.rooms.Accounts.TestNumberOf(v.ctx(), company.OwnerID)
	switch {
	case errors.Is(err, accounts.ErrNotFound):
	case err != nil:
		return m, err
	default:
		m.Number, m.Verified = number.PhoneNumber, number.Verified
		m.Left = max(0, d.opts.Replacements-number.Replacements)
	}
	used, err := d.rooms.Ledger.TestUsed(v.ctx(), sms.CompanyID(company.ID))
	m.Remaining = max(0, d.opts.TestQuota-used)
	return m, err
}

// testNumber is GET /test-number.
func (d *Dashboard) testNumber(v *visit, t tenant) { v.showTestNumber(http.StatusOK, t, v.newForm()) }

func (v *visit) showTestNumber(status int, t tenant, f *form) {
	m, err := v.testMode(t.Company)
	if err == nil && m.Number != "" && !m.Verified {
		var code sms.Status
		if code, err = v.d.rooms.Messages.LastCode(v.ctx(), t.User.ID, m.Number); err == nil {
			m.Code = &code
		} else if errors.Is(err, messages.ErrNotFound) {
			err = nil
		}
	}
	if err != nil {
		v.handleError("reading a test number", err)
		return
	}
	v.renderPage(status, "testnumber", m, f)
}

// sendCode is POST /test-number: it sets the number and sends it a code by SMS.
func (d *Dashboard) sendCode(v *visit, t tenant) {
	f := v.form()
	number := f.number("number")
	if f.ok() {
		if err := d.rooms.Intake.Serves(number); err != nil {
			f.refuse("number", "refusal.carrier")
		}
	}
	if !f.ok() {
		v.showTestNumber(http.StatusUnprocessableEntity, t, f)
		return
	}
	ctx := context.WithoutCancel(v.ctx()) // once the code is stored, it is sent even if the client disconnects
	code, err := d.rooms.Accounts.StartVerification(ctx, t.User.ID, number)
	if err == nil {
		err = d.rooms.Intake.SendCode(ctx, &accounts.Principal{UserID: t.User.ID}, number, t.User.Language, code, accounts.CodeLife)
	}
	if err != nil {
		v.refuseTestNumber(t, f, "number", err)
		return
	}
	v.redirect("/test-number", "flash.code")
}

// verifyTestNumber is POST /test-number/verify.
func (d *Dashboard) verifyTestNumber(v *visit, t tenant) {
	f := v.form()
	code := strings.ReplaceAll(f.required("code"), " ", "")
	if len(code) != 6 || strings.Trim(code, "0123456789") != "" {
		f.refuse("code", "testnumber.code.six")
	}
	if !f.ok() {
		v.showTestNumber(http.StatusUnprocessableEntity, t, f)
		return
	}
	if _, err := d.rooms.Accounts.ConfirmVerification(context.WithoutCancel(v.ctx()), t.User.ID, code); err != nil {
		v.refuseTestNumber(t, f, "code", err)
		return
	}
	v.redirect("/test-number", "flash.verifiednumber")
}

// refuseTestNumber shows why a verification failed: at the field, or above the form if the page may lack the field.
func (v *visit) refuseTestNumber(t tenant, f *form, field string, err error) {
	status := http.StatusUnprocessableEntity
	soon, tooSoon := errors.AsType[*accounts.TooSoonError](err)
	wrong, isWrong := errors.AsType[*accounts.WrongCodeError](err)
	_, refused := errors.AsType[sms.Refusal](err)
	switch {
	case tooSoon:
		status = http.StatusTooManyRequests
		f.refuse(field, "testnumber.soon", int(math.Ceil(soon.After.Seconds())))
	case isWrong:
		f.refuse(field, "testnumber.code.wrong", wrong.Left)
	case errors.Is(err, accounts.ErrVerifiedAlready):
		f.refuse(field, "testnumber.already")
	case errors.Is(err, accounts.ErrReplacements):
		f.notice("testnumber.replacements")
	case errors.Is(err, accounts.ErrNoCode):
		f.notice("testnumber.code.none")
	case errors.Is(err, accounts.ErrCodeExpired):
		f.notice("testnumber.code.expired")
	case errors.Is(err, accounts.ErrCodeTries):
		f.notice("testnumber.code.tries")
	case refused:
		f.refuse(field, "refusal.carrier")
	default:
		v.handleError("verifying a test number", err)
		return
	}
	v.showTestNumber(status, t, f)
}

// number returns a field with a phone number.
func (f *form) number(field string) sms.Number {
	value := f.required(field)
	number, ok := f.v.d.opts.Plan.Parse(value)
	if !ok {
		f.refuse(field, "error.number")
	}
	return number
}
