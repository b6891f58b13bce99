package api

import (
	"errors"
	"strings"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/accounts/testnumbers"
	"intumwa/internal/otp"
	"intumwa/internal/throttle"
	"intumwa/sms"
)

const codeLength = 6 // digits of a one-time code

// testNumberView is an account's test mode (rule api 4.4).
type testNumberView struct {
	PhoneNumber      *string  `json:"phone_number"`
	Verified         bool     `json:"verified"`
	ReplacementsLeft int      `json:"replacements_left"`
	Sender           string   `json:"sender"`
	Quota            poolView `json:"quota"`
}

// poolView is the pool of test segments (rule api 4.4.5).
type poolView struct {
	Segments  int `json:"segments"`
	Remaining int `json:"remaining"`
}

// putTestNumber is PUT /v1/test-number: it sets the number and sends it a one-time
// code by SMS, free of charge.
func (a *API) putTestNumber(c *gin.Context) {
	a.changeTestNumber(c, func(f fields, p *problems) func() error {
		number := p.number(a.opts.Plan, f.phoneNumber, numberRequired, numberInvalid)
		return func() error { return a.sendCode(c, number) }
	})
}

// verifyTestNumber is POST /v1/test-number/verify.
func (a *API) verifyTestNumber(c *gin.Context) {
	a.changeTestNumber(c, func(f fields, p *problems) func() error {
		code := p.oneTimeCode(f.code)
		return func() error {
			ctx, cancel := background(c)
			defer cancel()
			_, err := a.TestNumbers.ConfirmCheck(ctx, caller(c).UserID, code)
			return err
		}
	})
}

// changeTestNumber parses a request with read, makes the change and responds with the account's test mode.
func (a *API) changeTestNumber(c *gin.Context, read func(fields, *problems) (change func() error)) {
	f, done, ok := a.fieldsOf(c)
	if !ok {
		return
	}
	var p problems
	change := read(f, &p)
	done()
	if err := p.first(); err != nil {
		a.writeError(c, err)
		return
	}
	leave, ok := a.enterLookup(c) // an account's codes wait for each other, each with a connection
	if !ok {
		return
	}
	defer leave()
	if err := change(); err != nil {
		if soon, ok := errors.AsType[*testnumbers.TooSoonError](err); ok {
			setRetryAfter(c, soon.After)
			err = codeTooSoon
		} else if limit, ok := errors.AsType[*testnumbers.CodeLimitError](err); ok {
			setRetryAfter(c, limit.After)
			err = codeLimit
		} else if _, ok := errors.AsType[*testnumbers.WrongCodeError](err); ok {
			err = codeWrong
		}
		a.writeError(c, err)
		return
	}
	respond(a, a.getTestNumber)(c)
}

func (a *API) sendCode(c *gin.Context, number sms.Number) error {
	ctx, cancel := background(c)
	defer cancel()
	p := caller(c)
	user, err := a.People.UserByID(ctx, p.UserID)
	if err != nil {
		return err
	}
	return a.Intake.VerifyNumber(ctx, user, p.Company, throttle.Network(c.ClientIP()), number)
}

// oneTimeCode reads six digits as a person typed them.
func (p *problems) oneTimeCode(v value) string {
	if isMissing(v) {
		p.add(codeRequired)
		return ""
	}
	s, _ := v.text()
	code := otp.Typed(s)
	if len(code) != codeLength || strings.Trim(code, "0123456789") != "" {
		p.add(codeInvalid)
	}
	return code
}

// getTestNumber is GET /v1/test-number.
func (a *API) getTestNumber(c *gin.Context) (view testNumberView, err error) {
	ctx, user := c.Request.Context(), caller(c).UserID
	view = testNumberView{Sender: a.opts.TestSender, ReplacementsLeft: testnumbers.MaxReplacements}
	number, err := a.TestNumbers.TestNumberOf(ctx, user)
	switch {
	case errors.Is(err, accounts.ErrNotFound):
	case err != nil:
		return view, err
	default:
		text := string(number.PhoneNumber)
		view.PhoneNumber, view.Verified = &text, number.Verified
		view.ReplacementsLeft = number.Left()
	}
	used := 0
	if company := caller(c).Company; company != nil {
		if used, err = a.Ledger.TestUsed(ctx, sms.CompanyID(company.ID)); err != nil {
			return view, err
		}
	}
	view.Quota = poolView{Segments: a.opts.TestQuota, Remaining: max(0, a.opts.TestQuota-used)}
	return view, nil
}
