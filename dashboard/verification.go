package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/verifications"
)

// verificationsPage is a company's verifications, without codes.
type verificationsPage struct {
	listing[verifications.Verification]

	Number  sms.Number                  // the user's verified test number; "": none
	Senders []option                    // the test sender, and approved ones
	Tried   *verifications.Verification // that the user has just started
	Texts   []verificationText
	Locales []option
	Most    int // characters of a text
}

// verificationText is what a locale's messages say.
type verificationText struct {
	Locale, Ours, Payment string
	Own                   *verifications.OwnText // nil: none was asked for
}

// verifications is GET /verifications.
func (d *Dashboard) verifications(v *visit, t tenant) (err error) {
	v.form().formKey()
	p := verificationsPage{Senders: []option{{d.opts.TestSender, v.lang.T("compose.test", d.opts.TestSender)}}, Most: verifications.MostText}
	approved, err := v.approvedSenders(t)
	if err != nil {
		return err
	}
	p.Senders = append(p.Senders, approved...)
	number, err := d.rooms.TestNumbers.TestNumberOf(v.ctx(), t.User.ID)
	if err == nil && number.Verified {
		p.Number = number.PhoneNumber
	} else if err != nil && !errors.Is(err, accounts.ErrNotFound) {
		return err
	}
	if id, wrong := ulid.ParseStrict(v.c.Query("of")); wrong == nil {
		tried, err := d.rooms.Verifications.ByULID(v.ctx(), t.company(), id)
		if err == nil {
			p.Tried = &tried
		} else if !errors.Is(err, verifications.ErrNotFound) {
			return err
		}
	}
	own, err := d.rooms.Verifications.OwnTexts(v.ctx(), t.company())
	if err != nil {
		return err
	}
	for _, locale := range verifications.Locales {
		text := verificationText{Locale: locale, Ours: verifications.Ours(locale, false), Payment: verifications.Ours(locale, true)}
		for i := range own {
			if own[i].Locale == locale {
				text.Own = &own[i]
			}
		}
		p.Texts, p.Locales = append(p.Texts, text), append(p.Locales, option{locale, v.lang.T(localeTexts[locale])})
	}
	p.listing, err = list(v, "/verifications", messagesOnPage, func(before int64, limit int) ([]verifications.Verification, int64, error) {
		found, err := d.rooms.Verifications.List(v.ctx(), t.company(), before, limit+1)
		return byID(limit, func(v *verifications.Verification) int64 { return v.ID }, found, err)
	})
	return v.page(err, "verifications", p)
}

// localeTexts maps the languages of texts to the keys of their names.
var localeTexts = map[string]string{"rn": "verification.rn", "fr": "verification.fr", "en": "verification.en", "sw": "verification.sw"}

// Locale returns the name of a text's language.
func (p *view) Locale(locale string) string { return p.T(localeTexts[locale]) }

// Verification returns the name of a verification's state.
func (p *view) Verification(s verifications.State) string { return p.T(verificationStates[s].text) }

// VerificationKind returns the kind of a state's badge.
func (p *view) VerificationKind(s verifications.State) string { return verificationStates[s].kind }

var verificationStates = map[verifications.State]struct{ text, kind string }{
	verifications.Pending: {"verification.pending", "wait"}, verifications.Approved: {"verification.approved", "good"},
	verifications.Cancelled: {"verification.cancelled", "off"}, verifications.Expired: {"verification.expired", "off"},
	verifications.Failed: {"verification.failed", "bad"}, verifications.MaxAttempts: {"verification.attempts", "bad"},
}

// tryVerification is POST /verifications: it sends a code to the user's own number.
func (d *Dashboard) tryVerification(v *visit, t tenant) error {
	f := v.form()
	sender, locale := f.sender("sender"), f.Value("locale")
	if localeTexts[locale] == "" {
		f.refuse("locale", "verification.locale.wrong")
	}
	number, err := d.rooms.TestNumbers.TestNumberOf(v.ctx(), t.User.ID)
	if errors.Is(err, accounts.ErrNotFound) || err == nil && !number.Verified {
		f.notice("verification.nonumber")
	} else if err != nil {
		return err
	}
	if !f.ok() {
		return d.verifications(v, t)
	}
	p, err := v.sender(t)
	if err != nil {
		return err
	}
	if p == nil {
		return d.verifications(v, t)
	}
	request := sha256.Sum256([]byte(strings.Join([]string{v.c.FullPath(), sender, string(number.PhoneNumber), locale}, "\x00")))
	ctx := intake.WithChannel(context.WithoutCancel(v.ctx()), messages.Page)
	answer, err := d.rooms.Intake.Verify(ctx, p, verifications.Request{Number: number.PhoneNumber, Sender: sender, Locale: locale, Digits: otp.Default, Life: verifications.DefaultLife},
		&intake.Key{Name: keyPrefix + f.formKey(), Request: request})
	if limit, limited := errors.AsType[*verifications.LimitError](err); limited {
		f.deny(http.StatusTooManyRequests, "verification.limit", v.lang.Time(postgres.Now().Add(limit.After)))
		return d.verifications(v, t)
	}
	if err != nil {
		if err = v.notSent(err); err != nil {
			return err
		}
		return d.verifications(v, t)
	}
	var started intake.Verified
	err = json.Unmarshal(answer.Body, &started)
	return v.done(err, "/verifications?of="+started.ID.String(), "flash.verification.sent")
}

// checkVerification is POST /verifications/:id/check.
func (d *Dashboard) checkVerification(v *visit, t tenant) error {
	f := v.form()
	code := otp.Typed(f.required("code"))
	id, err := ulid.ParseStrict(v.c.Param("id"))
	if err != nil {
		return errNotFound
	}
	path := "/verifications?of=" + id.String()
	if !f.ok() {
		return v.redirect(path, "flash.verification.wrong")
	}
	_, err = d.rooms.Intake.CheckCode(context.WithoutCancel(v.ctx()), t.company(), id, verifications.Entry{Code: code})
	_, limited := errors.AsType[*verifications.LimitError](err)
	switch {
	case errors.Is(err, verifications.ErrWrong):
		return v.redirect(path, "flash.verification.wrong")
	case limited:
		return v.redirect(path, "flash.verification.checks")
	case errors.Is(err, verifications.ErrPayment), errors.Is(err, verifications.ErrFinished), errors.Is(err, verifications.ErrChecks), errors.Is(err, verifications.ErrExpired):
		return v.redirect(path, "flash.verification.over")
	}
	return v.done(err, path, "flash.verification.approved")
}

// askForText is POST /verifications/text: it asks for an own text.
func (d *Dashboard) askForText(v *visit, t tenant) error {
	f := v.form()
	locale, text := f.Value("locale"), f.required("text")
	if localeTexts[locale] == "" {
		f.refuse("locale", "verification.locale.wrong")
	}
	if f.ok() {
		_, err := v.by().AskForText(v.ctx(), t.company(), locale, strings.ReplaceAll(text, "\r\n", "\n"))
		for wrong, key := range textFaults {
			if errors.Is(err, wrong) {
				f.refuse("text", key)
			}
		}
		if f.ok() {
			return v.done(err, "/verifications", "flash.verification.asked")
		}
	}
	return d.verifications(v, t)
}

// textFaults maps the errors of a company's own text to the keys of their texts.
var textFaults = map[error]string{verifications.ErrNoCode: "verification.text.nocode", verifications.ErrPlaceholder: "verification.text.placeholder",
	verifications.ErrSigns: "verification.text.signs", verifications.ErrLongOwn: "verification.text.long"}
