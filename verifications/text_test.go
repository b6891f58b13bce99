package verifications

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"intumwa/internal/otp"
	"intumwa/sms"
)

// webOTP is the last line of a message for a page (WICG, Origin-bound one-time codes): the host and the code.
var webOTP = regexp.MustCompile(`(?:^|\n)@([^ #@]+) #([^ #@%]+)$`)

// TestTexts: every text is one segment with the longest values, shows the code, its time and a warning not to share it,
// and is what Android's SMS Retriever and browsers read.
func TestTexts(t *testing.T) {
	payee := strings.Repeat("W", MostPayee)
	amount := "9" + strings.Repeat(" 9", MostAmount/2-1) + "9" // it contains no code
	share := map[string]string{"rn": "Ntuyihe", "fr": "Ne le donnez", "en": "Do not share", "sw": "Usimpe"}
	for _, locale := range Locales {
		for _, digits := range []int{otp.Least, otp.Default, otp.Most} {
			for name, v := range map[string]Verification{
				"plain":   {},
				"payment": {Amount: amount, Payee: payee},
				"app":     {AppHash: "FA+9qCX9VSu"},
				"page":    {WebDomain: strings.Repeat("a", MostDomain-3) + ".bi"},
			} {
				v.Locale, v.Secret, v.SentAt = locale, otp.New(digits), time.Now()
				v.ExpiresAt = v.SentAt.Add(MostLife)
				stored, err := v.text(nil)
				if err != nil {
					t.Errorf("%s, %s: %v", locale, name, err)
					continue
				}
				code := v.Secret.Code([]byte("key"))
				text := v.Secret.Reveal([]byte("key"), stored)
				if strings.Contains(stored, code) || !strings.Contains(text, code) || !strings.Contains(text, "60") ||
					!strings.Contains(text, share[locale]) {
					t.Errorf("%s, %s: %q, stored as %q", locale, name, text, stored)
				}
				if encoding, segments := sms.Count(text); encoding != sms.GSM7 || segments != 1 {
					t.Errorf("%s, %s: %v, %d segments: %q", locale, name, encoding, segments, text)
				}
				if v.Amount != "" && (!strings.Contains(text, amount) || !strings.Contains(text, payee)) {
					t.Errorf("%s: a payment is not shown: %q", locale, text)
				}
				if v.AppHash != "" && (len(text) > 140 || !strings.HasSuffix(text, v.AppHash)) {
					t.Errorf("%s: Android does not read it: %q", locale, text)
				}
				if v.WebDomain != "" {
					if found := webOTP.FindStringSubmatch(text); found == nil || found[1] != v.WebDomain || found[2] != code {
						t.Errorf("%s: a browser does not read it: %q", locale, text)
					}
				}
			}
		}
	}
}

// TestTextTooLong: a payment with a hash or a domain may not fit, and is refused.
func TestTextTooLong(t *testing.T) {
	v := Verification{Locale: "sw", Secret: otp.New(10), ExpiresAt: time.Now().Add(time.Hour), SentAt: time.Now(),
		Amount: strings.Repeat("9", MostAmount), Payee: strings.Repeat("W", MostPayee), WebDomain: strings.Repeat("a", 37) +
			".bi"}
	if text, err := v.text(nil); !errors.Is(err, ErrLong) {
		t.Errorf("%q, %v", text, err)
	}
	v.WebDomain, v.AppHash, v.Payee = "", "FA+9qCX9VSu", strings.Repeat("é", MostPayee) // two bytes each
	if text, err := v.text(nil); !errors.Is(err, ErrLong) {
		t.Errorf("%q, %v", text, err)
	}
}

// TestValidShown: no value can add a code, a placeholder, a line or a domain of its own to a text.
func TestValidShown(t *testing.T) {
	for value, want := range map[string]bool{
		"25 000 FBu": true, "Boutique Chez Évariste": true, "A": true, strings.Repeat("a", 30): true,
		"": false, " a": false, "a ": false, "a\nb": false, "******": false, "{{code}}": false, "a{b": false,
		"@evil.bi": false, "#1": false,
		"пример": false, strings.Repeat("a", 31): false, "a\x00b": false, "…": false,
	} {
		if got := ValidShown(value, MostPayee); got != want {
			t.Errorf("%q: %t", value, got)
		}
	}
	for domain, want := range map[string]bool{
		"example.bi": true, "a-b.example.com": true, "xn--bcher-kva.example": true,
		"example": false, "EXAMPLE.bi": false, "https://example.bi": false, "example.bi:443": false, "-a.bi": false,
		"a.bi.": false, "1.2.3.4": false, "": false,
		strings.Repeat("a", 38) + ".bi": false,
	} {
		if got := ValidDomain(domain); got != want {
			t.Errorf("%q: %t", domain, got)
		}
	}
	for hash, want := range map[string]bool{"FA+9qCX9VSu": true, "FA+9qCX9VS": false, "FA+9qCX9VSuu": false,
		"FA-9qCX9VSu": false, "": false} {
		if got := ValidAppHash(hash); got != want {
			t.Errorf("%q: %t", hash, got)
		}
	}
}

// TestCheckText: a company's own text shows the code, fits one segment and has nothing that stands for a code.
func TestCheckText(t *testing.T) {
	for text, want := range map[string]error{
		"ACME: {{code}}, {{minutes}} min":            nil,
		"{{ code }}":                                 nil,
		"ACME: {{code}} pour {{amount}} à {{payee}}": nil,
		"ACME":                                   ErrNoCode,
		"ACME {{cod}}":                           ErrNoCode,
		"ACME {{code}} {{name}}":                 ErrPlaceholder,
		"ACME {{code}} *":                        ErrSigns,
		"ACME {{code}} {":                        ErrSigns,
		"ACME {{code}} пример":                   ErrSigns,
		"{{code}}" + strings.Repeat("a", 151):    ErrLongOwn,
		"{{code}}" + strings.Repeat("a", 150):    nil,
		"{{code}}\n\n@evil.example #{{minutes}}": ErrSigns,
	} {
		if got := CheckText(text); !errors.Is(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	own := sms.ParseTemplate("ACME {{code}}")
	v := Verification{Locale: "en", Secret: otp.New(6), SentAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute)}
	if text, err := v.text(own); err != nil || text != "ACME ******" {
		t.Errorf("%q, %v", text, err)
	}
	v.Amount, v.Payee = "1", "B"
	if text, err := v.text(own); err != nil || !strings.Contains(text, "to pay 1 to B") {
		t.Errorf("a payment is not shown: %q, %v", text, err)
	}
}
