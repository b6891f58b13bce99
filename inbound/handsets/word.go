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
		'A': "ÀÁÂÃÄÅĀĂĄ", 'C': "ÇĆĈĊČ", 'D': "ĎĐ", 'E': "ÈÉÊËĒĔĖĘĚ", 'G': "ĜĞĠĢ", 'H': "ĤĦ", 'I': "ÌÍÎÏĨĪĬĮİ", 'J': "Ĵ",
		'K': "Ķ",
		'L': "ĹĻĽĿŁ", 'N': "ÑŃŅŇǸ", 'O': "ÒÓÔÕÖØŌŎŐ", 'R': "ŔŖŘ", 'S': "ŚŜŞŠ", 'T': "ŢŤŦ", 'U': "ÙÚÛÜŨŪŬŮŰŲ", 'W': "Ŵ",
		'Y': "ÝŶŸ", 'Z': "ŹŻŽ",
	} {
		for _, r := range marked {
			letters[r] = plain
		}
	}
	return letters
}()

// Word returns a text for comparison: in capitals, without accents, and without characters around it that are neither
// letter nor digit. It is empty for a text without letters and digits.
func Word(text string) string {
	return fold(strings.TrimFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
}

func fold(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.M, unicode.Cf) { // an accent after its letter; an invisible character
			return -1
		}
		r = unicode.ToUpper(r)
		if plain, marked := folded[r]; marked {
			return plain
		}
		return r
	}, text)
}

// maxWord is how many bytes of a word are compared. A longer one is tooLong, which fold returns for no word.
const (
	maxWord = 80
	tooLong = "?"
)

// inWord reports whether a character continues a word: a letter, a digit, or a mark or invisible character behind one.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.In(r, unicode.M, unicode.Cf)
}

// Words are the first words of a text, its first runs of letters and digits: in capitals, without accents; "" for none.
type Words struct {
	First, Second string
	More          bool // a third one
}

// FirstWords returns the first words of a text.
func FirstWords(text string) (w Words) {
	next := func() (word string) {
		for word == "" {
			start := strings.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
			if start < 0 {
				return ""
			}
			text = text[start:]
			end := strings.IndexFunc(text, func(r rune) bool { return !inWord(r) })
			if end < 0 {
				end = len(text)
			}
			if word = tooLong; end <= maxWord {
				word = fold(text[:end])
			}
			text = text[end:]
		}
		return word
	}
	w.First, w.Second = next(), next()
	w.More = next() != ""
	return w
}

// Keyword returns a route's keyword in the form of FirstWords, so that it matches. The error explains why no message
// can begin with it.
func Keyword(text string) (string, error) {
	words := FirstWords(text)
	switch first := words.First; {
	case strings.ContainsFunc(text, sms.IsControl) || !utf8.ValidString(text):
		return "", fmt.Errorf("%q has a control character", text)
	case first == "":
		return "", fmt.Errorf("%q has no letter or digit", text)
	case words.Second != "":
		return "", fmt.Errorf("%q is more than one word: only the first word of a message is compared", text)
	case first == tooLong:
		return "", fmt.Errorf("%q is longer than %d bytes", text, maxWord)
	}
	return words.First, nil
}

// Address returns an address in the form of routes: a national number with the country code and no plus (25779000000),
// other digits without an international prefix (8080), a name in capitals.
func Address(text string) string {
	text = sms.CompactAddress(strings.TrimSpace(postgres.Text(text)))
	if number, ok := sms.FromCarrier(text); ok {
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
