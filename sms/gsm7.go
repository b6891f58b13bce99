package sms

// escape precedes a character of the extension table. U+001B itself is not a GSM-7 character: a handset would combine
// it with the next one.
const escape = 0x1B

// notGSM7 marks a character outside both tables.
const notGSM7 = 0xFFFF

// defaultAlphabet is the default alphabet in the order of its codes (3GPP TS 23.038, 6.2.1). Code 0x1B is the escape;
// U+001B at its place is skipped when the reverse tables are built. Code 0x09 is the capital Ç: the small one is not in
// the alphabet.
var defaultAlphabet = [128]rune([]rune("" +
	"@£$¥èéùìòÇ\nØø\rÅå" +
	"Δ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ" +
	" !\"#¤%&'()*+,-./" +
	"0123456789:;<=>?" +
	"¡ABCDEFGHIJKLMNO" +
	"PQRSTUVWXYZÄÖÑÜ§" +
	"¿abcdefghijklmno" +
	"pqrstuvwxyzäöñüà"))

// extensionCodes are the codes that follow an escape (3GPP TS 23.038, 6.2.1.1).
var extensionCodes = map[rune]byte{
	'\f': 0x0A, '^': 0x14, '{': 0x28, '}': 0x29, '\\': 0x2F,
	'[': 0x3C, '~': 0x3D, ']': 0x3E, '|': 0x40, '€': 0x65,
}

const (
	firstGreek = 'Γ' // U+0393
	lastGreek  = 'Ω' // U+03A9
)

// latinSeptets and greekSeptets map a character to its septets: a code below 0x80 is
// one septet, escape<<8|code is two. Only the euro sign is outside both ranges.
var (
	latinSeptets, greekSeptets = reverseTables()
	extensionCharacters        = extensionTable()
)

const euroSeptets = escape<<8 | 0x65

func reverseTables() (latin [256]uint16, greek [lastGreek - firstGreek + 1]uint16) {
	for i := range latin {
		latin[i] = notGSM7
	}
	for i := range greek {
		greek[i] = notGSM7
	}
	for code, r := range defaultAlphabet {
		switch {
		case code == escape:
		case r >= firstGreek:
			greek[r-firstGreek] = uint16(code)
		default:
			latin[r] = uint16(code)
		}
	}
	for r, code := range extensionCodes {
		if r < 256 {
			latin[r] = escape<<8 | uint16(code)
		}
	}
	return latin, greek
}

// extensionTable maps the code after an escape to its character, 0 where there is none.
func extensionTable() (table [128]rune) {
	for r, code := range extensionCodes {
		table[code] = r
	}
	return table
}

// septetsOf returns a character's septets, or notGSM7.
func septetsOf(r rune) uint16 {
	switch {
	case r < 256: // runes of a string are never negative
		return latinSeptets[r]
	case r >= firstGreek && r <= lastGreek:
		return greekSeptets[r-firstGreek]
	case r == '€':
		return euroSeptets
	}
	return notGSM7
}

// appendGSM7 appends a text's septets, one in a byte. The text must consist of GSM-7 characters.
func appendGSM7(dst []byte, text string) []byte {
	for _, r := range text {
		code := septetsOf(r)
		if code > 0xFF {
			dst = append(dst, escape)
		}
		dst = append(dst, byte(code))
	}
	return dst
}
