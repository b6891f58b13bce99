package develop

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

// TestNumber is GET /test-number.
func (ps *Pages) TestNumber(v *web.Visit, t web.Tenant) error {
	m, err := ps.Test.Mode(v, t.Company)
	if err != nil {
		return err
	}
	if m.Number != "" && !m.Verified {
		code, err := ps.Deps.Lookup.LastCode(v.Ctx(), t.User.ID, m.Number)
		switch {
		case err == nil:
			m.Code = &code
		case !errors.Is(err, messages.ErrNotFound):
			return err
		}
	}
	return v.Render("testnumber", m)
}

// SendCode is POST /test-number: it sets the number and sends it a code by SMS.
func (ps *Pages) SendCode(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	number := f.Number(ps.Plan, "number")
	if !f.OK() {
		return ps.TestNumber(v, t)
	}
	ctx := context.WithoutCancel(v.Ctx()) // once the code is stored, it is sent even if the client disconnects
	if err := ps.VerifyNumber(ctx, t.User, &t.Company, v.Network(), number); err != nil {
		return ps.refuseTestNumber(v, t, "number", err)
	}
	return v.Redirect("/test-number", "flash.code")
}

// VerifyTestNumber is POST /test-number/verify.
func (ps *Pages) VerifyTestNumber(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	code := otp.Typed(f.Required("code"))
	if len(code) != 6 || strings.Trim(code, "0123456789") != "" {
		f.Refuse("code", "testnumber.code.six")
	}
	if !f.OK() {
		return ps.TestNumber(v, t)
	}
	if _, err := ps.Deps.TestNumbers.ConfirmCheck(context.WithoutCancel(v.Ctx()), t.User.ID, code); err != nil {
		return ps.refuseTestNumber(v, t, "code", err)
	}
	m, err := ps.Test.Mode(v, t.Company)
	next := "/test-number"
	if m.Left == testnumbers.MaxReplacements { // the first
		next = "/first"
	}
	return v.Done(err, next, "flash.verifiednumber")
}

// refuseTestNumber shows why a check failed: at the field, or above the form if the page may lack the field.
func (ps *Pages) refuseTestNumber(v *web.Visit, t web.Tenant, field string, err error) error {
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
	return ps.TestNumber(v, t)
}
