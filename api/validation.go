package api

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"intumwa/sms"
)

// maxMessage bounds a message's or a template's text, in code points.
const maxMessage = 600

// problems are the failures of a validation, by field path, in the order in
// which the fields were looked at (contract 7.1).
type problems struct {
	errors map[string][]string
	first  string
}

func (p *problems) add(field, text string) {
	if p.errors == nil {
		p.errors = make(map[string][]string)
		p.first = text
	}
	p.errors[field] = append(p.errors[field], text)
}

func (p *problems) any() bool { return p.errors != nil }

// invalid is the body of a 422.
type invalid struct {
	Message string              `json:"message"`
	Errors  map[string][]string `json:"errors"`
}

func (a *API) invalid(c *gin.Context, text string, p *problems) {
	c.AbortWithStatusJSON(http.StatusUnprocessableEntity, invalid{text, p.errors})
}

// missing tells what counts as no value for a required string: no field, null,
// nothing but whitespace (decisions.md).
func missing(v any) bool {
	s, isString := v.(string)
	return v == nil || isString && strings.TrimFunc(s, unicode.IsSpace) == ""
}

// senderName tells whether v is a sender's name: 1 to 11 ASCII letters and
// digits (contract 8).
func senderName(v any) (string, bool) {
	s, ok := v.(string)
	if !ok || len(s) < 1 || len(s) > 11 {
		return "", false
	}
	for i := range len(s) {
		if b := s[i]; (b < '0' || b > '9') && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') {
			return "", false
		}
	}
	return s, true
}

// text tells what is wrong with a message's or a template's text: nothing, or
// which of the two texts says it.
func text(v any, requiredText, longText string) (string, string) {
	s, ok := v.(string)
	switch {
	case missing(v) || !ok || strings.IndexByte(s, 0) >= 0:
		return "", requiredText
	case len(s) > maxMessage && utf8.RuneCountInString(s) > maxMessage:
		return "", longText
	}
	return s, ""
}

// number reads a phone number; problem is one of the two texts, or "".
func (a *API) number(v any, requiredText, invalidText string) (n sms.Number, problem string) {
	if missing(v) {
		return "", requiredText
	}
	s, _ := v.(string)
	n, ok := a.opts.Plan.Parse(s)
	if !ok {
		return "", invalidText
	}
	return n, ""
}
