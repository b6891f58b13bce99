package handsets

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// folded maps accented capitals of French and its neighbours to plain ones.
var folded = func() map[rune]rune {
	letters := map[rune]rune{}
	for plain, marked := range map[rune]string{
		'A': "ÀÁÂÃÄÅĀĂĄ", 'C': "ÇĆĈĊČ", 'D': "ĎĐ", 'E': "ÈÉÊËĒĔĖĘĚ", 'G': "ĜĞĠĢ", 'H': "ĤĦ", 'I': "ÌÍÎÏĨĪĬĮİ", 'J': "Ĵ", 'K': "Ķ",
		'L': "ĹĻĽĿŁ", 'N': "ÑŃŅŇǸ", 'O': "ÒÓÔÕÖØŌŎŐ", 'R': "ŔŖŘ", 'S': "ŚŜŞŠ", 'T': "ŢŤŦ", 'U': "ÙÚÛÜŨŪŬŮŰŲ", 'W': "Ŵ", 'Y': "ÝŶŸ", 'Z': "ŹŻŽ",
	} {
		for _, r := range marked {
			letters[r] = plain
		}
	}
	return letters
}()

// Word returns a word for comparison: in capitals, without accents, and without characters around it that are neither
// letter nor digit. It is empty for a text without letters and digits.
func Word(text string) string {
	text = strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) { // an accent after its letter
			return -1
		}
		r = unicode.ToUpper(r)
		if plain, marked := folded[r]; marked {
			return plain
		}
		return r
	}, text)
}

// maxWord is how many bytes of a word are compared. A longer one is tooLong, which Word returns for no text.
const (
	maxWord = 80
	tooLong = "?"
)

// FirstWords returns the first two words of a text, as Word returns them; "" for none.
func FirstWords(text string) (first, second string) {
	next := func() (word string) {
		for word == "" {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
			if text == "" {
				return ""
			}
			end := strings.IndexFunc(text, unicode.IsSpace)
			if end < 0 {
				end = len(text)
			}
			if end <= maxWord {
				word = Word(text[:end])
			} else {
				word = tooLong
			}
			text = text[end:]
		}
		return word
	}
	return next(), next()
}

// Keyword returns a route's keyword in the form of FirstWords, so that it matches. The error explains why no message
// can begin with it.
func Keyword(text string) (string, error) {
	first, second := FirstWords(text)
	switch {
	case strings.ContainsFunc(text, sms.IsControl) || !utf8.ValidString(text):
		return "", fmt.Errorf("%q has a control character", text)
	case first == "":
		return "", fmt.Errorf("%q has no letter or digit", text)
	case second != "":
		return "", fmt.Errorf("%q is more than one word: only the first word of a message is compared", text)
	case first == tooLong:
		return "", fmt.Errorf("%q is longer than %d bytes", text, maxWord)
	}
	return first, nil
}

// Address returns an address in the form of routes: a national number with the country code and no plus (25779000000),
// other digits without an international prefix (8080), a name in capitals.
func Address(text string) string {
	text = compact(strings.TrimSpace(postgres.Text(text)))
	if number, ok := Number(text); ok {
		return number.Digits()
	}
	if digits := strings.TrimPrefix(text, "+"); digits != "" && strings.Trim(digits, "0123456789") == "" {
		if number := strings.TrimLeft(digits, "0"); len(number) > 8 && len(number) <= len(digits)-2 {
			return number
		}
		return digits
	}
	return strings.ToUpper(text)
}

// The longest addresses (SMPP 3.4, 5.2.9; 3GPP TS 23.040, 9.1.2.5).
const (
	maxDigits = 20
	maxName   = 11
)

// RouteAddress is Address for an address that can receive messages. The error explains why this one cannot.
func RouteAddress(text string) (string, error) {
	address := Address(text)
	name := strings.ContainsFunc(address, unicode.IsLetter)
	switch {
	case address == "":
		return "", fmt.Errorf("%q is empty", text)
	case strings.ContainsFunc(address, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", fmt.Errorf("%q has a character that is not printable ASCII", text)
	case name && len(address) > maxName:
		return "", fmt.Errorf("%q has more than %d characters, the most that a name has", text, maxName)
	case !name && strings.Trim(address, "0123456789*#") != "":
		return "", fmt.Errorf("%q is neither a number nor a name", text)
	case !name && len(address) > maxDigits:
		return "", fmt.Errorf("%q has more than %d digits", text, maxDigits)
	}
	return address, nil
}

// compact removes separators from a number: "+257 22 00 11 22" is "+25722001122". Other text is returned unchanged.
func compact(text string) string {
	bare := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("-.()", r) {
			return -1
		}
		return r
	}, text)
	if strings.Trim(strings.TrimPrefix(bare, "+"), "0123456789") != "" {
		return text
	}
	return bare
}

// Number returns the national number of an address in carriers' forms: with or without country code and plus. It
// ignores which ranges are open.
func Number(address string) (number sms.Number, ok bool) {
	digits, plus := strings.CutPrefix(address, "+")
	if !plus {
		digits, plus = strings.CutPrefix(digits, "00257")
		if plus {
			digits = "257" + digits
		}
	}
	if strings.Trim(digits, "0123456789") != "" {
		return "", false
	}
	switch {
	case len(digits) == 11 && strings.HasPrefix(digits, "257"):
		return sms.Number("+" + digits), true
	case len(digits) == 8 && !plus:
		return sms.Number("+257" + digits), true
	}
	return "", false
}
