package handsets

import (
	"strings"
	"unicode"

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

// maxWord bounds what is looked at of a word, in octets.
const maxWord = 80

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
				word = "?" // longer than any that means something, and no word that Word returns
			}
			text = text[end:]
		}
		return word
	}
	return next(), next()
}

// Address returns an address as routes have it: a number of the country in its
// international form without a plus (25779000000), any other digits as they are
// (8080), a name in capitals.
func Address(text string) string {
	text = strings.TrimSpace(clean(text))
	if number, ok := Number(text); ok {
		return number.Digits()
	}
	if digits := strings.TrimPrefix(text, "+"); digits != "" && strings.Trim(digits, "0123456789") == "" {
		return digits
	}
	return strings.ToUpper(text)
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
