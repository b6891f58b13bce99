package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"intumwa/sms"
)

// Bounds of contract 8, in code points.
const (
	maxMessage  = 600
	maxVariable = 255
	maxSender   = 11
)

// maxItems bounds a batch (contract 8).
const maxItems = 500

// textInvalid is the message of every 422 of a batch (decisions.md).
const textInvalid = "The given data was invalid."

// problems are the failures of a validation, in the order in which the fields
// were looked at (contract 7.1). A field fails for one reason only.
type problems []problem

type problem struct{ field, text string }

func (p *problems) add(field, text string) { *p = append(*p, problem{field, text}) }

// MarshalJSON writes an object of field paths and their texts.
func (p problems) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, each := range p {
		if i > 0 {
			out.WriteByte(',')
		}
		field, err := json.Marshal(each.field)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(each.text)
		if err != nil {
			return nil, err
		}
		out.Write(field)
		out.WriteString(":[")
		out.Write(text)
		out.WriteByte(']')
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// invalid is the body of a 422.
type invalid struct {
	Message string   `json:"message"`
	Errors  problems `json:"errors"`
}

// refuseFirst answers 422 with the first problem's text, as single requests do.
func (p problems) refuseFirst(c *gin.Context) { p.refuse(c, p[0].text) }

// refuse answers 422.
func (p problems) refuse(c *gin.Context, text string) {
	c.Abort()
	write(c, http.StatusUnprocessableEntity, invalid{text, p})
}

// isMissing tells what counts as no value for a required string: no field,
// null, nothing but whitespace (decisions.md).
func isMissing(v value) bool {
	if v.isNull() {
		return true
	}
	s, isString := v.text()
	return isString && blank(s)
}

func blank(s string) bool { return strings.TrimLeftFunc(s, unicode.IsSpace) == "" }

// sender reads a sender's name: 1 to 11 ASCII letters and digits (contract 8).
// The text says what is wrong with it, "" if nothing.
func sender(v value, requiredText, invalidText string) (name, text string) {
	if isMissing(v) {
		return "", requiredText
	}
	s, ok := v.text()
	if !ok || len(s) > maxSender {
		return "", invalidText
	}
	for i := range len(s) {
		if b := s[i]; (b < '0' || b > '9') && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') {
			return "", invalidText
		}
	}
	return s, ""
}

// body tells what is wrong with a message's or a template's text: nothing, or
// which of the two texts says it.
func body(v value, requiredText, longText string) (s, text string) {
	s, ok := v.text()
	switch {
	case !ok || blank(s) || strings.IndexByte(s, 0) >= 0:
		return "", requiredText
	case longer(s, maxMessage):
		return s, longText
	}
	return s, ""
}

// longer tells whether a text has more code points than most.
func longer(s string, most int) bool { return len(s) > most && utf8.RuneCountInString(s) > most }

// number reads a phone number; the text is one of the two, or "".
func (a *API) number(v value, requiredText, invalidText string) (n sms.Number, text string) {
	if isMissing(v) {
		return "", requiredText
	}
	s, _ := v.text()
	n, ok := a.opts.Plan.Parse(s)
	if !ok {
		return "", invalidText
	}
	return n, ""
}
