package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"intumwa/sms"
)

// Bounds of rule api 8, in code points.
const (
	maxMessage  = 600
	maxVariable = 255
	maxSender   = 11
)

// maxItems bounds a batch (rule api 8).
const maxItems = 500

// textInvalid is the message of every 422 of a batch (rule choices 1.6).
const textInvalid = "The given data was invalid."

// Of the failing fields of a request so many are listed in its answer, and so
// many octets of them: paths bear names that the client chose. A bulk of 500 with
// both fields wrong is listed whole (rule choices 1.6).
const (
	maxListed       = 2000
	maxListedOctets = 1 << 20
)

// keyMore is the last key of a list that is not whole.
const keyMore = "more"

// problems are the failures of a validation, in the order in which the fields
// were looked at (rule api 7.1). A field fails for one reason only. What is past
// the bounds is counted, not listed.
type problems struct {
	listed []problem
	octets int // of the listed ones
	more   int // fields that fail too
	full   bool
}

type problem struct{ field, text string }

// add lists a field with what is wrong with it.
func (p *problems) add(field, text string) { p.addParts("", field, text) }

// addParts lists the field list + path with a text: the text itself, or, of a
// list's item, "The <field>" and the text. What is not listed costs no memory.
func (p *problems) addParts(list, path, text string) {
	octets := 2*(len(list)+len(path)) + len(text)
	if p.full = p.full || len(p.listed) >= maxListed || p.octets+octets > maxListedOctets; p.full {
		p.more++
		return
	}
	p.octets += octets
	if list != "" {
		path = list + path
		text = "The " + path + text
	}
	p.listed = append(p.listed, problem{path, text})
}

// none tells that nothing is wrong.
func (p *problems) none() bool { return len(p.listed) == 0 && p.more == 0 }

// MarshalJSON writes an object of field paths and their texts.
func (p problems) MarshalJSON() ([]byte, error) {
	all := p.listed
	if p.more > 0 {
		all = append(all[:len(all):len(all)], problem{keyMore, fmt.Sprintf("There are %d further fields that are not listed.", p.more)})
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, each := range all {
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
func (p problems) refuseFirst(c *gin.Context) { p.refuse(c, p.listed[0].text) }

// refuseField answers 422 for one field.
func refuseField(c *gin.Context, field, text string) {
	problems{listed: []problem{{field, text}}}.refuse(c, text)
}

// refuse answers 422.
func (p problems) refuse(c *gin.Context, text string) {
	c.Abort()
	write(c, http.StatusUnprocessableEntity, invalid{text, p})
}

// isMissing tells what counts as no value for a required string: no field,
// null, nothing but whitespace (rule choices 1.4).
func isMissing(v value) bool {
	if v.isNull() {
		return true
	}
	s, isString := v.text()
	return isString && blank(s)
}

func blank(s string) bool { return strings.TrimLeftFunc(s, unicode.IsSpace) == "" }

// sender reads a sender's name: 1 to 11 ASCII letters and digits (rule api 8).
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
