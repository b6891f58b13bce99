package dashboard

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"

	"intumwa/accounts/testnumbers"
	"intumwa/dashboard/web"
	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// testNumber is GET /test-number.
func (d *Dashboard) testNumber(v *web.Visit, t web.Tenant) error {
	m, err := d.test.Mode(v, t.Company)
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
	m, err := d.test.Mode(v, t.Company)
	next := "/test-number"
	if m.Left == d.test.Replacements { // the first
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
