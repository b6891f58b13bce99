package sheets

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	wide "golang.org/x/text/encoding/unicode"
)

// The encodings of a file, by their value in the form.
const (
	encodingUTF8  = "UTF-8"
	encodingUTF16 = "UTF-16"
)

// oldEncodings are the encodings with one byte per character that spreadsheets write: Excel on Windows, on a Macintosh
// (“CSV (Macintosh)”, and some versions' plain CSV), and for MS-DOS (“CSV (MS-DOS)”).
var oldEncodings = []oldEncoding{
	{"Windows-1252", charmap.Windows1252},
	{"MacRoman", charmap.Macintosh},
	{"CP850", charmap.CodePage850},
}

type oldEncoding struct {
	name string
	of   *charmap.Charmap
}

// Encoding is one that a user can choose.
type Encoding struct {
	Name string // as in [Reading]; empty: it is guessed
	Key  string // of its text
}

// Encodings are the choices of a form.
var Encodings = []Encoding{{"", "campaign.encoding.auto"}, {encodingUTF8, ""}, {encodingUTF16, ""},
	{oldEncodings[0].name, "campaign.encoding.windows"}, {oldEncodings[1].name, "campaign.encoding.mac"},
	{oldEncodings[2].name, "campaign.encoding.dos"}}

// sheetText is a file's text in UTF-8.
type sheetText struct {
	text     string       // its lines end in \n
	encoding string       // as in the form
	sure     bool         // not guessed
	foreign  map[int]bool // the lines in another encoding than the rest
}

// decodeSheet reads a file as text. want is the encoding that the user chose; "" is a guess. Each line is read on its
// own: one line that somebody pasted from elsewhere does not change the others.
func decodeSheet(file []byte, want string) (t sheetText, err error) {
	if name, text, ok := decodeWide(file); ok && (want == "" || want == name) {
		t = sheetText{text: text, encoding: name, sure: true}
	} else {
		t = decodeLines(bytes.TrimPrefix(file, []byte("\ufeff")), want)
	}
	t.text = strings.TrimRight(t.text, "\x00\x1a") // MS-DOS programs end a file so
	t.text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", " ", "\f", " ").Replace(t.text)
	if i := strings.IndexFunc(t.text, func(r rune) bool {
		return r == utf8.RuneError || r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	}); i >= 0 {
		return t, &Error{1 + strings.Count(t.text[:i], "\n"), "campaign.file.octets", nil}
	}
	return t, nil
}

// decodeWide decodes UTF-16, with a byte order mark or without: then nearly every second byte is zero.
func decodeWide(file []byte) (name, text string, ok bool) {
	var order wide.Endianness
	switch {
	case bytes.HasPrefix(file, []byte("\xff\xfe")):
		order = wide.LittleEndian
	case bytes.HasPrefix(file, []byte("\xfe\xff")):
		order = wide.BigEndian
	default:
		begin := file[:min(len(file), 4096)]
		var zeroes [2]int
		for i, b := range begin {
			if b == 0 {
				zeroes[i%2]++
			}
		}
		most := max(zeroes[0], zeroes[1])
		if len(file)%2 != 0 || most*4 < len(begin) || (zeroes[0]+zeroes[1]-most)*20 > len(begin) {
			return "", "", false
		}
		order = wide.LittleEndian
		if zeroes[0] == most {
			order = wide.BigEndian
		}
	}
	decoded, _ := wide.UTF16(order, wide.UseBOM).NewDecoder().Bytes(file) // invalid characters are refused later
	return encodingUTF16, string(decoded), true
}

// decodeLines decodes a file in UTF-8 or in an old encoding.
func decodeLines(file []byte, want string) sheetText {
	lines := slices.Collect(splitLines(file))
	var old [][]byte // lines that are not UTF-8
	composed := 0    // lines in UTF-8 that are not ASCII
	for _, line := range lines {
		switch {
		case !utf8.Valid(line):
			old = append(old, line)
		case bytes.ContainsFunc(line, func(r rune) bool { return r >= utf8.RuneSelf }):
			composed++
		}
	}
	t := sheetText{encoding: encodingUTF8, sure: want != "", foreign: map[int]bool{}}
	at := slices.IndexFunc(oldEncodings, func(e oldEncoding) bool { return e.name == want })
	all := at >= 0 // the user said so
	switch {
	case !all && len(old) == 0:
		t.text, t.sure = string(file), true
		return t
	case !all:
		at = guess(old)
	}
	mixed := !all && (composed >= len(old) || want == encodingUTF8)
	if !mixed {
		t.encoding = oldEncodings[at].name
	}
	decoder := encoding.Decoder{Transformer: oldEncodings[at].of.NewDecoder()}
	var text strings.Builder
	for i, line := range lines {
		valid := utf8.Valid(line)
		if valid && !all {
			text.Write(line)
			continue
		}
		decoded, _ := decoder.Bytes(line) // invalid characters are refused later
		text.Write(decoded)
		if mixed {
			t.foreign[i+1] = true
		}
	}
	t.text = text.String()
	return t
}

// splitLines returns the lines of a file with their ends: \n, \r\n or \r.
func splitLines(file []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(file) > 0 {
			end := bytes.IndexAny(file, "\r\n") + 1
			switch {
			case end == 0:
				end = len(file)
			case file[end-1] == '\r' && end < len(file) && file[end] == '\n':
				end++
			}
			if !yield(file[:end]) {
				return
			}
			file = file[end:]
		}
	}
}

// guess returns the old encoding in which lines look most like a person's text.
func guess(lines [][]byte) (at int) {
	var evidence []byte // letters around the bytes in question, without repetitions of a whole file
	for _, line := range lines[:min(len(lines), guessedLines)] {
		evidence = append(evidence, line[:min(len(line), maxSheetLine)]...)
	}
	best := 0
	for i, e := range oldEncodings {
		decoded, _ := e.of.NewDecoder().Bytes(evidence) // an invalid character counts against it
		if likely := likelihood(string(decoded)); i == 0 || likely > best {
			at, best = i, likely
		}
	}
	return at
}

const guessedLines = 1000

// accents are the letters of French by frequency; other European languages' and Kirundi's are rarer in Burundi.
var accents = map[rune]int{'é': 10, 'è': 7, 'à': 7, 'ê': 6, 'ç': 6, 'ô': 5, 'î': 5, 'ï': 5, 'û': 5, 'ù': 4, 'ë': 4,
	'â': 4, 'œ': 3, 'ü': 3, 'ö': 3,
	'É': 6, 'È': 3, 'À': 3, 'Ê': 3, 'Ç': 3, 'Ô': 3, 'Î': 3, 'Ë': 2, 'Ï': 2, 'Û': 2, 'Â': 2, 'Ù': 2, 'Œ': 2}

// initials are the same for the first letter of a cell, mostly of a name.
var initials = map[rune]int{'É': 8, 'À': 3, 'È': 2, 'Ç': 2, 'Î': 2, 'Ô': 2, 'Ê': 1, 'Ë': 1, 'é': 4, 'à': 3, 'ç': 2,
	'ê': 1, 'î': 1, 'ô': 1}

// likelihood adds up how likely the characters of a text are where they stand.
func likelihood(text string) (sum int) {
	before, inWord := '\n', false // the character before; it belongs to a word with small letters
	runes := []rune(text)
	for i, r := range runes {
		after := ' '
		if i+1 < len(runes) {
			after = runes[i+1]
		}
		score, accent := accents[r]
		switch {
		case r < utf8.RuneSelf:
		case r == utf8.RuneError || unicode.IsControl(r):
			sum -= 50
		case accent && unicode.IsUpper(r) && (inWord || unicode.IsLower(before)): // HÉlÈne
			sum -= 8
		case accent && unicode.IsLower(r) && unicode.IsUpper(before) && unicode.IsUpper(after): // RENé is rarer than RENÉ
			sum--
		case accent && strings.ContainsRune("\n;,\t|\"", before):
			sum += initials[r]
		case accent:
			sum += score
		case r == '’' && unicode.IsLetter(before) && unicode.IsLetter(after): // d’accord
			sum += 8
		case strings.ContainsRune("«»“”‘’–—…€°\u00a0", r) && !(unicode.IsLetter(before) && unicode.IsLetter(after)):
			sum += 2
		case unicode.IsLetter(r): // of another language
			sum -= 2
		default: // a sign
			sum -= 6
		}
		inWord = unicode.IsLetter(r) && (inWord || unicode.IsLower(r))
		before = r
	}
	return sum
}
