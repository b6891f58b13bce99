package dashboard

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"

	"intumwa/accounts"
	"intumwa/accounts/testnumbers"
	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// testMode is an account's test mode (rule api 4.4).
type testMode struct {
	Number           sms.Number // empty: not set yet
	Verified         bool
	Left             int // how often the verified number may still be replaced
	Quota, Remaining int // segments of the pool, and those left
	Sender           string
	Code             *sms.Status // status of the latest code's message, for an unverified number; nil: unknown
}

// CodeFailed reports whether the message with the code has failed.
func (m testMode) CodeFailed() bool { return m.Code != nil && *m.Code == sms.Failed }

// CodePending reports whether the message with the code is pending.
func (m testMode) CodePending() bool { return m.Code != nil && *m.Code == sms.Pending }

func (v *visit) testMode(company accounts.Company) (m testMode, err error) {
	d := v.d
	m = testMode{Left: d.opts.Replacements, Quota: d.opts.TestQuota, Sender: d.opts.TestSender}
	number, err := d.rooms.TestNumbers.TestNumberOf(v.ctx(), v.session.User.ID)
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
func (d *Dashboard) testNumber(v *visit, t tenant) error {
	m, err := v.testMode(t.Company)
	if err != nil {
		return err
	}
	if m.Number != "" && !m.Verified {
		code, err := d.rooms.Lookup.LastCode(v.ctx(), t.User.ID, m.Number)
		switch {
		case err == nil:
			m.Code = &code
		case !errors.Is(err, messages.ErrNotFound):
			return err
		}
	}
	return v.render("testnumber", m)
}

// sendCode is POST /test-number: it sets the number and sends it a code by SMS.
func (d *Dashboard) sendCode(v *visit, t tenant) error {
	f := v.form()
	number := f.number("number")
	if !f.ok() {
		return d.testNumber(v, t)
	}
	ctx := context.WithoutCancel(v.ctx()) // once the code is stored, it is sent even if the client disconnects
	if err := d.rooms.Intake.VerifyNumber(ctx, t.User, &t.Company, v.network(), number); err != nil {
		return d.refuseTestNumber(v, t, "number", err)
	}
	return v.redirect("/test-number", "flash.code")
}

// verifyTestNumber is POST /test-number/verify.
func (d *Dashboard) verifyTestNumber(v *visit, t tenant) error {
	f := v.form()
	code := otp.Typed(f.required("code"))
	if len(code) != 6 || strings.Trim(code, "0123456789") != "" {
		f.refuse("code", "testnumber.code.six")
	}
	if !f.ok() {
		return d.testNumber(v, t)
	}
	if _, err := d.rooms.TestNumbers.ConfirmVerification(context.WithoutCancel(v.ctx()), t.User.ID, code); err != nil {
		return d.refuseTestNumber(v, t, "code", err)
	}
	m, err := v.testMode(t.Company)
	next := "/test-number"
	if m.Left == d.opts.Replacements { // the first
		next = "/first"
	}
	return v.done(err, next, "flash.verifiednumber")
}

// refuseTestNumber shows why a verification failed: at the field, or above the form if the page may lack the field.
func (d *Dashboard) refuseTestNumber(v *visit, t tenant, field string, err error) error {
	f := v.form()
	soon, tooSoon := errors.AsType[*testnumbers.TooSoonError](err)
	limit, limited := errors.AsType[*testnumbers.CodeLimitError](err)
	wrong, isWrong := errors.AsType[*testnumbers.WrongCodeError](err)
	_, refused := errors.AsType[sms.Refusal](err)
	switch {
	case tooSoon:
		f.refuse(field, "testnumber.soon", int(math.Ceil(soon.After.Seconds())))
		f.status = http.StatusTooManyRequests
	case limited:
		text := "testnumber.limit"
		if limit.Free {
			text = "testnumber.limit.free"
		}
		f.refuse(field, text, f.v.lang.Time(postgres.Now().Add(limit.After)))
		f.status = http.StatusTooManyRequests
	case isWrong:
		f.refuse(field, "testnumber.code.wrong", wrong.Left)
	case errors.Is(err, testnumbers.ErrVerifiedAlready):
		f.refuse(field, "testnumber.already")
	case errors.Is(err, testnumbers.ErrReplacements):
		f.notice("testnumber.replacements")
	case errors.Is(err, testnumbers.ErrNoCode):
		f.notice("testnumber.code.none")
	case errors.Is(err, testnumbers.ErrCodeExpired):
		f.notice("testnumber.code.expired")
	case errors.Is(err, testnumbers.ErrCodeTries):
		f.notice("testnumber.code.tries")
	case refused:
		f.refuse(field, "refusal.carrier")
	default:
		return err
	}
	return d.testNumber(v, t)
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
