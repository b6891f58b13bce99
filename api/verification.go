package api

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/sms"
	"intumwa/verifications"
)

// defaultLocale is the language of a text without a locale.
const defaultLocale = "fr"

// createVerification is POST /v1/verifications.
func (a *API) createVerification(c *gin.Context) {
	handleSend(a, c, a.readVerification, problems.first, func(c *gin.Context, answer intake.Answer, err error) {
		a.writeAnswer(c, answer, limited(c, err))
	},
		func(ctx context.Context, p *accounts.Principal, r verifications.Request, key *intake.Key) (intake.Answer, error) {
			return a.Intake.Verify(ctx, p, r, key)
		})
}

func (a *API) readVerification(f fields) (r verifications.Request, p problems) {
	r.Number = a.recipient(f, &p)
	r.Sender = p.sender(f.sender, senderRequired, senderInvalid)
	r.Locale = p.localeOf(f.locale)
	r.Digits = p.whole(f.codeLength, codeLengthInvalid, otp.Least, otp.Most, otp.Default)
	r.Life = time.Duration(p.whole(f.ttl, ttlInvalid, int(verifications.LeastLife.Seconds()),
		int(verifications.MostLife.Seconds()),
		int(verifications.DefaultLife.Seconds()))) * time.Second
	r.Reference = p.label(f.reference, referenceWrong)
	r.Amount, r.Payee = p.payment(f)
	if p.none() && (r.Amount == "") != (r.Payee == "") {
		p.add(paymentIncomplete)
	}
	r.AppHash = p.valid(f.appHash, appHashInvalid, verifications.ValidAppHash)
	r.WebDomain = p.valid(f.webDomain, webDomainInvalid, verifications.ValidDomain)
	if r.AppHash != "" && r.WebDomain != "" {
		p.add(webDomainToo)
	}
	r.EndUser = p.valid(f.endUser, endUserInvalid, func(s string) bool {
		return !longerThan(s, sms.MaxLabel) &&
			sms.IsPrintable(s)
	})
	return r, p
}

// localeOf reads the language of a text.
func (p *problems) localeOf(v value) string {
	name := p.valid(v, localeInvalid, func(s string) bool { return verifications.LocaleOf(s) != "" })
	return cmp.Or(verifications.LocaleOf(name), defaultLocale)
}

// payment reads the amount and the payee of a payment, as a text shows them; both are "" without one.
func (p *problems) payment(f fields) (amount, payee string) {
	return p.shown(f.amount, amountInvalid, verifications.MostAmount),
		p.shown(f.payee, payeeInvalid, verifications.MostPayee)
}

func (p *problems) shown(v value, invalid *refusal, most int) string {
	return verifications.Shown(p.valid(v, invalid,
		func(s string) bool { return verifications.ValidShown(verifications.Shown(s), most) }))
}

// valid reads an optional text; missing and null are "".
func (p *problems) valid(v value, invalid *refusal, is func(string) bool) string {
	if v.isNull() {
		return ""
	}
	text, isText := v.text()
	if !isText || !is(text) {
		p.add(invalid)
		return ""
	}
	return text
}

// whole reads an optional whole number.
func (p *problems) whole(v value, invalid *refusal, least, most, missing int) int {
	if v.isNull() {
		return missing
	}
	n, err := strconv.Atoi(string(v))
	if err != nil || n < least || n > most {
		p.add(invalid)
		return missing
	}
	return n
}

// verificationNamed returns the ULID of the path; notFound for another text.
func verificationNamed(c *gin.Context) (ulid.ULID, error) {
	name, ok := nameOf(c.Param("id"))
	if !ok || name.number != 0 {
		return ulid.ULID{}, notFound
	}
	return name.ulid, nil
}

// limited turns an error about a limit of verifications into its refusal, with the time to wait.
func limited(c *gin.Context, err error) error {
	if limit, ok := errors.AsType[*verifications.LimitError](err); ok {
		setRetryAfter(c, limit.After)
		if limit.Limit == "checks" {
			return verificationChecks
		}
		return verificationLimit
	}
	return err
}

// getVerification is GET /v1/verifications/{id}.
func (a *API) getVerification(c *gin.Context) (view intake.VerificationView, err error) {
	id, err := verificationNamed(c)
	if err != nil {
		return view, err
	}
	v, err := a.Verifications.ByULID(c.Request.Context(), companyID(c), id)
	if err == nil && v.State == verifications.Approved { // the row may be visible and still be lost with its server
		ctx, cancel := background(c)
		defer cancel()
		v, err = a.Intake.FindApproved(ctx, companyID(c), id)
	}
	return intake.ViewOf(&v), err
}

// checkVerification is POST /v1/verifications/{id}/check.
func (a *API) checkVerification(c *gin.Context) {
	f, done, ok := a.fieldsOf(c)
	if !ok {
		return
	}
	var p problems
	entry := verifications.Entry{Code: p.enteredCode(f.code)}
	entry.Amount, entry.Payee = p.payment(f)
	done()
	if err := p.first(); err != nil {
		a.writeError(c, err)
		return
	}
	leave, ok := a.enterLookup(c) // checks of one verification wait for each other, each with a connection
	if !ok {
		return
	}
	defer leave()
	respond(a, func(c *gin.Context) (intake.VerificationView, error) {
		return a.judge(c, func(ctx context.Context, company sms.CompanyID, id ulid.ULID) (verifications.Verification, error) {
			return a.Intake.CheckCode(ctx, company, id, entry)
		})
	})(c)
}

// enteredCode reads a code as a person typed it.
func (p *problems) enteredCode(v value) string {
	if isMissing(v) {
		p.add(codeRequired)
		return ""
	}
	s, _ := v.text()
	code := otp.Typed(s)
	if len(code) < otp.Least || len(code) > otp.Most || strings.Trim(code, "0123456789") != "" {
		p.add(codeDigits)
	}
	return code
}

// cancelVerification is POST /v1/verifications/{id}/cancel.
func (a *API) cancelVerification(c *gin.Context) (intake.VerificationView, error) {
	return a.judge(c, a.Intake.CancelVerification)
}

// judge changes the named verification, and returns it as it is afterwards.
func (a *API) judge(c *gin.Context, do func(context.Context, sms.CompanyID, ulid.ULID) (verifications.Verification,
	error)) (view intake.VerificationView, err error) {
	id, err := verificationNamed(c)
	if err != nil {
		return view, err
	}
	ctx, cancel := background(c)
	defer cancel()
	v, err := do(ctx, companyID(c), id)
	if err == nil && v.Repeated {
		c.Header("Idempotent-Replayed", "true")
	}
	err = limited(c, err)
	if errors.Is(err, verifications.ErrChecks) {
		setRetryAfter(c, max(time.Second, v.ExpiresAt.Sub(postgres.Now())))
	}
	if errors.Is(err, verifications.ErrPayment) {
		var p problems
		p.add(paymentRequired)
		err = p.first()
	}
	return intake.ViewOf(&v), err
}

// feedbackView is the response to a report on a message.
type feedbackView struct {
	ID        ulid.ULID `json:"id"`
	Converted bool      `json:"converted"`
}

// sendFeedback is POST /v1/sms/{id}/feedback.
func (a *API) sendFeedback(c *gin.Context) {
	f, done, ok := a.fieldsOf(c)
	if !ok {
		return
	}
	var p problems
	if f.converted != "true" && f.converted != "false" {
		p.add(convertedInvalid)
	}
	converted := f.converted == "true"
	done()
	if err := p.first(); err != nil {
		a.writeError(c, err)
		return
	}
	leave, ok := a.enterLookup(c)
	if !ok {
		return
	}
	defer leave()
	respond(a, func(c *gin.Context) (view feedbackView, err error) {
		record, err := a.messageNamed(c)
		if err != nil {
			return view, err
		}
		ctx, cancel := background(c)
		defer cancel()
		return feedbackView{record.ULID, converted},
			a.Intake.Feedback(ctx, verifications.Feedback{Company: companyID(c), MessageID: record.ID,
				Message: record.ULID, CreatedAt: record.CreatedAt, Carrier: record.Carrier, Number: record.Number,
				Converted: converted})
	})(c)
}
