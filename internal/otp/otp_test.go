package otp_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"intumwa/internal/otp"
)

var key = []byte("0123456789abcdef0123456789abcdef")

// TestCode: a code has its digits, differs from secret to secret and from key to key, and only it is accepted.
func TestCode(t *testing.T) {
	for digits := otp.Least; digits <= otp.Most; digits++ {
		s := otp.New(digits)
		code := s.Code(key)
		if len(code) != digits || strings.Trim(code, "0123456789") != "" {
			t.Errorf("%d digits: %q", digits, code)
		}
		if code != s.Code(key) || !s.Is(key, code) || s.Is(key, code+"0") || s.Is(key, "") || s.Is(key, code[1:]) {
			t.Errorf("%d digits: the check is wrong", digits)
		}
		if bytes.Contains(s, []byte(code)) {
			t.Errorf("%d digits: the secret shows the code", digits)
		}
		if digits >= otp.Default && code == otp.New(digits).Code(key) && code == otp.New(digits).Code(key) {
			t.Errorf("%d digits: three secrets with one code", digits)
		}
		if digits >= otp.Default && code == s.Code([]byte("another key")) {
			t.Errorf("%d digits: the key does not matter", digits)
		}
	}
	for _, s := range []otp.Secret{nil, {}, {6}, append(otp.Secret{11}, make([]byte, 16)...),
		append(otp.Secret{6}, make([]byte, 15)...)} {
		if s.Code(key) != "" || s.Is(key, "") || s.Mask() != "" || s.Reveal(key, "a*b") != "a*b" {
			t.Errorf("%v counts as a secret", s)
		}
	}
}

// TestDigitsAreEven: each digit is as frequent as the others, at each place.
func TestDigitsAreEven(t *testing.T) {
	const draws = 20_000
	var counts [otp.Most][10]int
	for range draws {
		for place, digit := range []byte(otp.New(otp.Most).Code(key)) {
			counts[place][digit-'0']++
		}
	}
	for place, of := range counts {
		for digit, n := range of {
			if n < draws/10*8/10 || n > draws/10*12/10 { // ten standard deviations
				t.Errorf("digit %d at place %d: %d of %d", digit, place, n, draws)
			}
		}
	}
}

// TestReveal: every mask of a text becomes the code, and the length stays.
func TestReveal(t *testing.T) {
	s := otp.New(6)
	text := "Code " + s.Mask() + ".\n\n@example.com #" + s.Mask()
	got := s.Reveal(key, text)
	if want := "Code " + s.Code(key) + ".\n\n@example.com #" + s.Code(key); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTyped: a code in any script and with what people and pages put around it is the code.
func TestTyped(t *testing.T) {
	for typed, want := range map[string]string{
		"123456": "123456", "123-456": "123456", " 123 456\r\n": "123456", "123\u00a0456\u2028": "123456",
		"\u200e123\u2011456\u202c": "123456", "١٢٣٤٥٦": "123456", "۱۲۳": "123",
		"１２３": "123", "१२३": "123", "\U0001d7d8\U0001d7ff": "09", "12a": "12a", "12.3": "12.3", "½": "½", "": "",
	} {
		if got := otp.Typed(typed); got != want {
			t.Errorf("%q: %q, not %q", typed, got, want)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.Is(unicode.Nd, r) {
			if got := otp.Typed(string(r)); len(got) != 1 || got < "0" || got > "9" || unicode.Is(unicode.Nd, r-1) == false &&
				got != "0" {
				t.Errorf("%U: %q", r, got)
			}
		}
	}
}

// TestKnown: the code that everybody knows has its digits, whatever the key.
func TestKnown(t *testing.T) {
	for digits := otp.Least; digits <= otp.Most; digits++ {
		if s := otp.Known(digits); s.Code(key) != "1234567890"[:digits] || !s.Is(nil, s.Code(key)) {
			t.Errorf("%d digits: %q", digits, s.Code(key))
		}
	}
}
