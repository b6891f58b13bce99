package sms

import (
	"strings"
	"unicode/utf8"
)

// substitutes maps characters outside GSM-7 to similar GSM-7 texts, for writers of French and Kirundi and their word
// processors. Other characters (another script, an emoji) have no acceptable GSM-7 text.
var substitutes = map[rune]string{
	'â': "a", 'á': "a", 'ã': "a", 'ā': "a", 'ă': "a", 'Â': "A", 'Á': "A", 'À': "A", 'Ã': "A", 'Ā': "A", 'Ă': "A",
	'ç': "c", 'č': "c", 'ć': "c", 'Č': "C", 'Ć': "C",
	'ê': "e", 'ë': "e", 'ē': "e", 'ě': "e", 'Ê': "E", 'Ë': "E", 'È': "E", 'Ē': "E", 'Ě': "E",
	'î': "i", 'ï': "i", 'í': "i", 'ī': "i", 'Î': "I", 'Ï': "I", 'Í': "I", 'Ì': "I", 'Ī': "I",
	'ô': "o", 'ó': "o", 'õ': "o", 'ō': "o", 'Ô': "O", 'Ó': "O", 'Ò': "O", 'Õ': "O", 'Ō': "O",
	'û': "u", 'ú': "u", 'ū': "u", 'Û': "U", 'Ú': "U", 'Ù': "U", 'Ū': "U",
	'ý': "y", 'ÿ': "y", 'Ý': "Y", 'Ÿ': "Y", 'š': "s", 'Š': "S", 'ž': "z", 'Ž': "Z", 'ǹ': "n", 'ń': "n",
	'œ': "oe", 'Œ': "OE",

	'\u2018': "'", '\u2019': "'", '\u201A': "'", '\u201B': "'", '\u2032': "'", '\u02BC': "'", '`': "'", '´': "'", '‹': "<",
	'›':      ">",
	'\u201C': `"`, '\u201D': `"`, '\u201E': `"`, '\u201F': `"`, '\u2033': `"`, '«': `"`, '»': `"`,
	'\u2010': "-", '\u2011': "-", '\u2012': "-", '\u2013': "-", '\u2014': "-", '\u2015': "-", '\u2212': "-",
	'•': "-", '·': ".", '…': "...", '×': "x", '÷': "/", '⁄': "/",

	'\t': " ", '\u00A0': " ", '\u2000': " ", '\u2001': " ", '\u2002': " ", '\u2003': " ", '\u2004': " ", '\u2005': " ",
	'\u2006': " ", '\u2007': " ",
	'\u2008': " ", '\u2009': " ", '\u200A': " ", '\u202F': " ", '\u205F': " ", '\u3000': " ",
	'\u2028': "\n", '\u2029': "\n", '\u0085': "\n",
	'\u00AD': "", '\u200B': "", '\u2060': "", '\uFEFF': "",
	'\u061C': "", '\u200E': "", '\u200F': "", '\u202A': "", '\u202B': "", '\u202C': "", '\u202D': "", '\u202E': "",
	'\u2066': "", '\u2067': "", '\u2068': "", '\u2069': "", // marks of direction

	'º': "o", 'ª': "a", '°': "o", '¹': "1", '²': "2", '³': "3", '½': "1/2", '¼': "1/4", '¾': "3/4",
	'™': "TM", '©': "(c)", '®': "(R)", '№': "No",
}

// composed has the GSM-7 letters that some systems write as a letter and a combining mark. Other marks from U+0300 to
// U+036F are dropped, which leaves the plain letter.
var composed = map[string]rune{
	"a\u0300": 'à', "a\u0308": 'ä', "a\u030A": 'å', "A\u0308": 'Ä', "A\u030A": 'Å',
	"e\u0300": 'è', "e\u0301": 'é', "E\u0301": 'É', "i\u0300": 'ì',
	"n\u0303": 'ñ', "N\u0303": 'Ñ', "o\u0300": 'ò', "o\u0308": 'ö', "O\u0308": 'Ö',
	"u\u0300": 'ù', "u\u0308": 'ü', "U\u0308": 'Ü', "C\u0327": 'Ç',
}

// Transliterate is "smart encoding", a company's option: it replaces characters outside GSM-7 by similar GSM-7 texts.
// If a character has no substitute, or the result needs more segments, it returns the text unchanged.
func Transliterate(text string) string {
	if _, plain := measureGSM7(text); plain {
		return text
	}
	similar := LookAlikes(text)
	size, plain := measureGSM7(similar)
	if !plain || size.Segments == 0 || size.Segments > Measure(text).Segments {
		return text
	}
	return similar
}

// LookAlikes replaces characters outside GSM-7 that have a similar GSM-7 text, and keeps the others.
func LookAlikes(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	base := rune(-1) // the last letter, which a combining mark may follow
	foreign := false // the last character was kept
	flush := func() {
		if base >= 0 {
			out.WriteRune(base)
			base = -1
		}
	}
	for _, r := range text {
		if r >= 0x0300 && r <= 0x036F && !foreign {
			if one, ok := composed[string([]rune{base, r})]; ok && base >= 0 {
				base = one
			}
			continue
		}
		flush()
		similar, known := substitutes[r]
		plain := septetsOf(r) != notGSM7
		switch {
		case plain:
			base = r
		case known:
			out.WriteString(similar)
		default:
			out.WriteRune(r)
		}
		foreign = !plain && !known
	}
	flush()
	return out.String()
}

// Plain returns an ASCII character in place of one of GSM 7-bit.
func Plain(r rune) rune {
	const letters, plain = "èéùìòÇØøÅåÆæßÉÄÖÑÜäöñüà¡¿€", "eeuioCOoAaAasEAONUaonua!?E"
	if at := strings.IndexRune(letters, r); at >= 0 {
		return rune(plain[utf8.RuneCountInString(letters[:at])])
	}
	return '?'
}
