package sending

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/dashboard/web"
	"intumwa/intake"
	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/texts"
	"intumwa/verifications"
)

// verificationsPage is a company's verifications, without codes.
type verificationsPage struct {
	web.Listing[verifications.Verification]

	Number  sms.Number                  // the user's verified test number; "": none
	Senders []web.Option                // the test sender, and approved ones
	Tried   *verifications.Verification // that the user has just started
	Texts   []verificationText
	Locales []web.Option
	Most    int // characters of a text
}

// verificationText is what a locale's messages say.
type verificationText struct {
	Locale, Ours, Payment string
	Own                   *verifications.OwnText // nil: none was asked for
}

// Verifications is GET /verifications.
func (ps *Pages) Verifications(v *web.Visit, t web.Tenant) (err error) {
	v.Form().FormKey()
	p := verificationsPage{Senders: []web.Option{{Value: ps.Test.Sender, Text: v.Lang.T("compose.test", ps.Test.Sender)}},
		Most: verifications.MostText}
	approved, err := ps.approvedSenders(v, t)
	if err != nil {
		return err
	}
	p.Senders = append(p.Senders, approved...)
	number, err := ps.Deps.TestNumbers.TestNumberOf(v.Ctx(), t.User.ID)
	if err == nil && number.Verified {
		p.Number = number.PhoneNumber
	} else if err != nil && !errors.Is(err, accounts.ErrNotFound) {
		return err
	}
	if id, wrong := ulid.ParseStrict(v.C.Query("of")); wrong == nil {
		tried, err := ps.Deps.Verifications.ByULID(v.Ctx(), t.CompanyID(), id)
		if err == nil {
			p.Tried = &tried
		} else if !errors.Is(err, verifications.ErrNotFound) {
			return err
		}
	}
	own, err := ps.Deps.Verifications.OwnTexts(v.Ctx(), t.CompanyID())
	if err != nil {
		return err
	}
	for _, locale := range verifications.Locales {
		text := verificationText{Locale: locale, Ours: verifications.Ours(locale, false),
			Payment: verifications.Ours(locale, true)}
		for i := range own {
			if own[i].Locale == locale {
				text.Own = &own[i]
			}
		}
		p.Texts, p.Locales = append(p.Texts, text),
			append(p.Locales, web.Option{Value: locale, Text: v.Lang.T(texts.Locales[locale])})
	}
	p.Listing, err = web.List(v, "/verifications", web.MessagesOnPage,
		func(before int64, limit int) ([]verifications.Verification, int64, error) {
			found, err := ps.Deps.Verifications.List(v.Ctx(), t.CompanyID(), before, limit+1)
			return web.ByID(limit, func(v *verifications.Verification) int64 { return v.ID }, found, err)
		})
	return v.Page(err, "verifications", p)
}

// localeOf returns the name of a text's language.
func localeOf(p *web.View, locale string) string { return p.T(texts.Locales[locale]) }

// verificationOf returns the name of a verification's state.
func verificationOf(p *web.View, s verifications.State) string {
	return p.T(verificationStates[s].text)
}

// verificationKind returns the kind of a state's badge.
func verificationKind(p *web.View, s verifications.State) string { return verificationStates[s].kind }

var verificationStates = map[verifications.State]struct{ text, kind string }{
	verifications.Pending: {"verification.pending", "wait"}, verifications.Approved: {"verification.approved", "good"},
	verifications.Cancelled: {"verification.cancelled", "off"}, verifications.Expired: {"verification.expired", "off"},
	verifications.Failed: {"verification.failed", "bad"}, verifications.MaxAttempts: {"verification.attempts", "bad"},
}

// TryVerification is POST /verifications: it sends a code to the user's own number.
func (ps *Pages) TryVerification(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	sender, locale := sender(f, "sender"), f.Value("locale")
	if texts.Locales[locale] == "" {
		f.Refuse("locale", "verification.locale.wrong")
	}
	number, err := ps.Deps.TestNumbers.TestNumberOf(v.Ctx(), t.User.ID)
	if errors.Is(err, accounts.ErrNotFound) || err == nil && !number.Verified {
		f.Fail("verification.nonumber")
	} else if err != nil {
		return err
	}
	if !f.OK() {
		return ps.Verifications(v, t)
	}
	p, err := ps.sender(v, t)
	if err != nil {
		return err
	}
	if p == nil {
		return ps.Verifications(v, t)
	}
	request := sha256.Sum256([]byte(strings.Join([]string{v.C.FullPath(), sender, string(number.PhoneNumber), locale},
		"\x00")))
	ctx := intake.WithChannel(context.WithoutCancel(v.Ctx()), messages.Page)
	answer, err := ps.Deps.Intake.Verify(ctx, p, verifications.Request{Number: number.PhoneNumber, Sender: sender,
		Locale: locale, Digits: otp.Default, Life: verifications.DefaultLife},
		&intake.Key{Name: web.KeyPrefix + f.FormKey(), Request: request})
	if limit, limited := errors.AsType[*verifications.LimitError](err); limited {
		f.Deny(http.StatusTooManyRequests, "verification.limit", v.Lang.Time(postgres.Now().Add(limit.After)))
		return ps.Verifications(v, t)
	}
	if err != nil {
		if err = ps.notSent(v, err); err != nil {
			return err
		}
		return ps.Verifications(v, t)
	}
	var started intake.Verified
	err = json.Unmarshal(answer.Body, &started)
	return v.Done(err, "/verifications?of="+started.ID.String(), "flash.verification.sent")
}

// CheckVerification is POST /verifications/:id/check.
func (ps *Pages) CheckVerification(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	code := otp.Typed(f.Required("code"))
	id, err := ulid.ParseStrict(v.C.Param("id"))
	if err != nil {
		return web.ErrNotFound
	}
	path := "/verifications?of=" + id.String()
	if !f.OK() {
		return v.Redirect(path, "flash.verification.wrong")
	}
	_, err = ps.Deps.Intake.CheckCode(context.WithoutCancel(v.Ctx()), t.CompanyID(), id, verifications.Entry{Code: code})
	_, limited := errors.AsType[*verifications.LimitError](err)
	switch {
	case errors.Is(err, verifications.ErrWrong):
		return v.Redirect(path, "flash.verification.wrong")
	case limited:
		return v.Redirect(path, "flash.verification.checks")
	case errors.Is(err, verifications.ErrPayment), errors.Is(err, verifications.ErrFinished),
		errors.Is(err, verifications.ErrChecks), errors.Is(err, verifications.ErrExpired):
		return v.Redirect(path, "flash.verification.over")
	}
	return v.Done(err, path, "flash.verification.approved")
}

// AskForText is POST /verifications/text: it asks for an own text.
func (ps *Pages) AskForText(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	locale, text := f.Value("locale"), f.Required("text")
	if texts.Locales[locale] == "" {
		f.Refuse("locale", "verification.locale.wrong")
	}
	if f.OK() {
		_, err := ps.By(v).AskForText(v.Ctx(), t.CompanyID(), locale, strings.ReplaceAll(text, "\r\n", "\n"))
		for wrong, key := range textFaults {
			if errors.Is(err, wrong) {
				f.Refuse("text", key)
			}
		}
		if f.OK() {
			return v.Done(err, "/verifications", "flash.verification.asked")
		}
	}
	return ps.Verifications(v, t)
}

// textFaults maps the errors of a company's own text to the keys of their texts.
var textFaults = map[error]string{verifications.ErrNoCode: "verification.text.nocode",
	verifications.ErrPlaceholder: "verification.text.placeholder",
	verifications.ErrSigns:       "verification.text.signs", verifications.ErrLongOwn: "verification.text.long"}
