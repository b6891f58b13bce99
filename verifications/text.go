package verifications

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Locales are the languages of the texts.
var Locales = []string{"rn", "fr", "en", "sw"}

// LocaleOf returns the language of a locale in any common form: FR, fr-FR, fr_BI.UTF-8 or fra; "" if there is no text
// in it.
func LocaleOf(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if end := strings.IndexAny(name, "-_.@"); end >= 0 {
		name = name[:end]
	}
	if short, known := map[string]string{"run": "rn", "fra": "fr", "fre": "fr", "eng": "en", "swa": "sw",
		"swh": "sw"}[name]; known {
		return short
	}
	if slices.Contains(Locales, name) {
		return name
	}
	return ""
}

// Limits of what a text shows, in characters.
const (
	MostAmount = 20
	MostPayee  = 30
	MostDomain = 40
	MostText   = 160 // of a company's own, with its placeholders

	androidBytes = 140 // of a message that Android's SMS Retriever reads, in UTF-8
)

// Names of a text's placeholders.
const (
	placeCode    = "code"
	placeMinutes = "minutes"
	placeAmount  = "amount"
	placePayee   = "payee"
)

// ours are our texts, by locale: of a verification, and of one of a payment. Each is one GSM-7 segment with the longest
// values.
var ours = map[string][2]string{
	"rn": {"Kode yawe ni {{code}}. Imara iminota {{minutes}}. Ntuyihe uwundi muntu.",
		"Kode {{code}} yo kwishura {{amount}} kuri {{payee}}. Imara iminota {{minutes}}. Ntuyihe uwundi muntu."},
	"fr": {"Votre code est {{code}}. Il est valable {{minutes}} min. Ne le donnez à personne.",
		"Code {{code}} pour payer {{amount}} à {{payee}}. Valable {{minutes}} min. Ne le donnez à personne."},
	"en": {"Your code is {{code}}. It is valid for {{minutes}} min. Do not share it.",
		"Code {{code}} to pay {{amount}} to {{payee}}. Valid for {{minutes}} min. Do not share it."},
	"sw": {"Msimbo wako ni {{code}}. Ni halali kwa dakika {{minutes}}. Usimpe mtu yeyote.",
		"Msimbo {{code}} wa kulipa {{amount}} kwa {{payee}}. Halali dakika {{minutes}}. Usimpe mtu yeyote."},
}

var (
	appHash = regexp.MustCompile(`^[A-Za-z0-9+/]{11}$`)
	domain  = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// ValidAppHash reports whether a text is the hash by which Android's SMS Retriever finds an app.
func ValidAppHash(s string) bool { return appHash.MatchString(s) }

// ValidDomain reports whether a text is a host name in lower case, with a dot (WebOTP), of at most MostDomain
// characters.
func ValidDomain(s string) bool { return len(s) <= MostDomain && domain.MatchString(s) }

// Shown is an amount or a payee as a text shows it: with the replacements of smart encoding, and single blanks. Two
// that look alike to a person are equal.
func Shown(s string) string {
	words := strings.FieldsFunc(sms.LookAlikes(s), func(r rune) bool { return r == ' ' })
	return strings.Join(words, " ")
}

// ValidShown reports whether a value may stand in a text: 1 to most characters of GSM-7 on one line, and no asterisk,
// which stands for the code, brace, which begins a placeholder, or @ and #, which browsers read.
func ValidShown(s string, most int) bool {
	encoding, _ := sms.Encode(s)
	return s != "" && encoding == sms.GSM7 && len([]rune(s)) <= most && strings.TrimSpace(s) == s &&
		!strings.ContainsAny(s, "*{}@#\n\r\f")
}

// ErrLong means that a text has more than one segment, or more bytes than Android reads.
var ErrLong = errors.New("the text does not fit one segment")

// Ours returns our text for a locale and a payment or another verification, with its placeholders.
func Ours(locale string, payment bool) string { return ours[locale][map[bool]int{true: 1}[payment]] }

// Text returns the text of a verification's messages, with the mask in the code's place: the company's own, if it is
// approved and shows what is paid, else ours. The error may be ErrLong.
func (s *Store) Text(ctx context.Context, db postgres.DB, v *Verification) (string, error) {
	own, err := own(ctx, db, v.Company, v.Locale)
	if err != nil {
		return "", err
	}
	return v.text(own)
}

func (v *Verification) text(own *sms.Template) (string, error) {
	payment := v.Amount != ""
	template := own
	if own == nil || payment && !(shows(own, placeAmount) && shows(own, placePayee)) {
		template = sms.ParseTemplate(Ours(v.Locale, payment))
	}
	// that are left, also of one sent again
	mask, minutes := v.Secret.Mask(), strconv.Itoa(max(1, int(v.ExpiresAt.Sub(v.SentAt).Minutes())))
	text := template.Render(map[string]*string{placeCode: &mask, placeMinutes: &minutes, placeAmount: &v.Amount,
		placePayee: &v.Payee})
	switch {
	case v.AppHash != "":
		if text += "\n" + v.AppHash; len(text) > androidBytes {
			return "", ErrLong
		}
	case v.WebDomain != "": // an empty line before it is customary
		text += "\n\n@" + v.WebDomain + " #" + mask
	}
	if _, segments := sms.Count(text); segments > 1 {
		return "", ErrLong
	}
	return text, nil
}

func shows(t *sms.Template, name string) bool {
	return slices.Contains(t.Names(), name)
}

// Reasons of a company's text that cannot be used.
var (
	ErrNoCode      = errors.New("the text must contain {{code}}")
	ErrPlaceholder = errors.New("the only placeholders are {{code}}, {{minutes}}, {{amount}} and {{payee}}")
	ErrSigns       = errors.New("the text must be of GSM-7 characters, without * { @ and #")
	ErrLongOwn     = errors.New("the text must fit one segment, with the longest values")
)

// CheckText returns why a text of a company's own cannot be used; nil if it can.
func CheckText(text string) error {
	t := sms.ParseTemplate(text)
	longest := map[string]*string{}
	for name, length := range map[string]int{placeCode: otp.Most, placeMinutes: len("60"), placeAmount: MostAmount,
		placePayee: MostPayee} {
		value := strings.Repeat("0", length)
		longest[name] = &value
	}
	if !shows(t, placeCode) {
		return ErrNoCode
	}
	if t.Missing(longest) != nil {
		return ErrPlaceholder
	}
	rendered := t.Render(longest)
	encoding, _ := sms.Encode(rendered)
	switch {
	case encoding != sms.GSM7 || strings.ContainsAny(rendered, "*{@#"):
		return ErrSigns
	}
	if _, segments := sms.Count(rendered); segments > 1 {
		return ErrLongOwn
	}
	return nil
}
