package accounts

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest displayed name, in code points.
const MaxName = 200

// Alphanumerics are the ASCII digits and letters.
const Alphanumerics = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// FoldEmail returns an email as stored, or "", which matches no user, if PostgreSQL could not store it.
func FoldEmail(email string) string {
	if !utf8.ValidString(email) || strings.IndexByte(email, 0) >= 0 {
		return ""
	}
	return strings.ToLower(strings.TrimSpace(email))
}

// CleanName trims a displayed name; [ErrInvalid] when it is empty, too long or unprintable.
func CleanName(what, name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", Errorf(ErrInvalid, "the %s is empty", what)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "", Errorf(ErrInvalid, "the %s has characters that are not text", what)
	case utf8.RuneCountInString(name) > MaxName:
		return "", Errorf(ErrInvalid, "the %s is longer than %d characters", what, MaxName)
	}
	return name, nil
}

// OneLine makes a text one line; ok is false unless it has 1 to most printable characters.
func OneLine(text string, most int) (line string, ok bool) {
	line = strings.Join(strings.Fields(text), " ")
	return line, line != "" && utf8.ValidString(line) && utf8.RuneCountInString(line) <= most &&
		!strings.ContainsFunc(line, unprintable)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
