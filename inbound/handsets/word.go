package handsets

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// folded has the plain letter of those that French and its neighbours write with a
// mark, in capitals.
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

// Word returns a word as words are compared: in capitals, without accents, and
// without what is neither letter nor digit around it. It is empty for what holds no
// letter or digit.
func Word(text string) string {
	text = strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) { // an accent behind its letter
			return -1
		}
		r = unicode.ToUpper(r)
		if plain, marked := folded[r]; marked {
			return plain
		}
		return r
	}, text)
}

// maxWord bounds what is looked at of a word, in octets. A longer one is tooLong, which
// Word returns of no text.
const (
	maxWord = 80
	tooLong = "?"
)

// FirstWords returns the first two words of a text, as Word writes them; "" where
// there is none.
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

// Keyword returns the keyword of a route: text as FirstWords returns the first word of a
// message, so that it matches. The error explains why no message begins with it.
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

// Address returns an address as routes have it: a number of the country in its
// international form without a plus (25779000000), any other digits as they are
// (8080) without an international prefix, a name in capitals.
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

// RouteAddress is Address for an address that messages may be sent to. The error explains why
// none can be sent to this one.
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

// compact returns a number without what people write between its digits: "+257 22 00 11 22"
// is "+25722001122". Any other text is returned as it is.
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

// Number returns the number that an address is, as carriers write them: with or
// without the country's code and a plus. Which ranges are open does not matter.
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
