package dashboard

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"

	"intumwa/accounts"
	"intumwa/accounts/testnumbers"
	"intumwa/dashboard/web"
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

func (d *Dashboard) testMode(v *web.Visit, company accounts.Company) (m testMode, err error) {
	m = testMode{Left: d.opts.Replacements, Quota: d.opts.TestQuota, Sender: d.opts.TestSender}
	number, err := d.rooms.TestNumbers.TestNumberOf(v.Ctx(), v.Session.User.ID)
	switch {
	case errors.Is(err, accounts.ErrNotFound):
	case err != nil:
		return m, err
	default:
		m.Number, m.Verified = number.PhoneNumber, number.Verified
		m.Left = max(0, d.opts.Replacements-number.Replacements)
	}
	used, err := d.rooms.Ledger.TestUsed(v.Ctx(), sms.CompanyID(company.ID))
	m.Remaining = max(0, d.opts.TestQuota-used)
	return m, err
}

// testNumber is GET /test-number.
func (d *Dashboard) testNumber(v *web.Visit, t web.Tenant) error {
	m, err := d.testMode(v, t.Company)
	if err != nil {
		return err
	}
	if m.Number != "" && !m.Verified {
		code, err := d.rooms.Lookup.LastCode(v.Ctx(), t.User.ID, m.Number)
		switch {
		case err == nil:
			m.Code = &code
		case !errors.Is(err, messages.ErrNotFound):
			return err
		}
	}
	return v.Render("testnumber", m)
}

// sendCode is POST /test-number: it sets the number and sends it a code by SMS.
func (d *Dashboard) sendCode(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	number := f.Number(d.opts.Plan, "number")
	if !f.OK() {
		return d.testNumber(v, t)
	}
	ctx := context.WithoutCancel(v.Ctx()) // once the code is stored, it is sent even if the client disconnects
	if err := d.rooms.Intake.VerifyNumber(ctx, t.User, &t.Company, v.Network(), number); err != nil {
		return d.refuseTestNumber(v, t, "number", err)
	}
	return v.Redirect("/test-number", "flash.code")
}

// verifyTestNumber is POST /test-number/verify.
func (d *Dashboard) verifyTestNumber(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	code := otp.Typed(f.Required("code"))
	if len(code) != 6 || strings.Trim(code, "0123456789") != "" {
		f.Refuse("code", "testnumber.code.six")
	}
	if !f.OK() {
		return d.testNumber(v, t)
	}
	if _, err := d.rooms.TestNumbers.ConfirmVerification(context.WithoutCancel(v.Ctx()), t.User.ID, code); err != nil {
		return d.refuseTestNumber(v, t, "code", err)
	}
	m, err := d.testMode(v, t.Company)
	next := "/test-number"
	if m.Left == d.opts.Replacements { // the first
		next = "/first"
	}
	return v.Done(err, next, "flash.verifiednumber")
}

// refuseTestNumber shows why a verification failed: at the field, or above the form if the page may lack the field.
func (d *Dashboard) refuseTestNumber(v *web.Visit, t web.Tenant, field string, err error) error {
	f := v.Form()
	soon, tooSoon := errors.AsType[*testnumbers.TooSoonError](err)
	limit, limited := errors.AsType[*testnumbers.CodeLimitError](err)
	wrong, isWrong := errors.AsType[*testnumbers.WrongCodeError](err)
	_, refused := errors.AsType[sms.Refusal](err)
	switch {
	case tooSoon:
		f.Refuse(field, "testnumber.soon", int(math.Ceil(soon.After.Seconds())))
		f.Status = http.StatusTooManyRequests
	case limited:
		text := "testnumber.limit"
		if limit.Free {
			text = "testnumber.limit.free"
		}
		f.Refuse(field, text, f.Visit.Lang.Time(postgres.Now().Add(limit.After)))
		f.Status = http.StatusTooManyRequests
	case isWrong:
		f.Refuse(field, "testnumber.code.wrong", wrong.Left)
	case errors.Is(err, testnumbers.ErrVerifiedAlready):
		f.Refuse(field, "testnumber.already")
	case errors.Is(err, testnumbers.ErrReplacements):
		f.Fail("testnumber.replacements")
	case errors.Is(err, testnumbers.ErrNoCode):
		f.Fail("testnumber.code.none")
	case errors.Is(err, testnumbers.ErrCodeExpired):
		f.Fail("testnumber.code.expired")
	case errors.Is(err, testnumbers.ErrCodeTries):
		f.Fail("testnumber.code.tries")
	case refused:
		f.Refuse(field, "refusal.carrier")
	default:
		return err
	}
	return d.testNumber(v, t)
}
