package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
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

// Ends of the texts that begin with "The <field>".
const (
	endRequired     = " field is required."
	endNumber       = " field must be a valid Burundi (+257) number."
	endMessageLong  = " field must not exceed 600 characters."
	endVariableLong = " field must not exceed 255 characters."
	endVariableText = " field must be a string."
	endParameter    = " parameter is not known."
)

// keyMore is the last key of a list that is not whole.
const keyMore = "more"

// problems are the failures of a validation, in the order in which the fields
// were looked at (rule api 7.1). A field fails for one reason only. What is past
// the bounds is counted, not listed.
type problems struct {
	code   string // of the first
	listed []problem
	octets int // of the listed ones
	more   int // fields that fail too
	full   bool
}

type problem struct{ field, text string }

// add lists a field with what is wrong with it.
func (p *problems) add(r *refusal) { p.addParts(r, "", r.field, r.text) }

// addNamed lists what is wrong with a field that the client named.
func (p *problems) addNamed(r *refusal, list, name string) { p.addParts(r, list, name, r.end()) }

// addParts lists the field list + path with a text: the text itself, or, where it
// names the field, "The <field>" and the text. What is not listed costs no memory.
func (p *problems) addParts(r *refusal, list, path, text string) {
	if p.code == "" {
		p.code = r.code
	}
	octets := 2*(len(list)+len(path)) + len(text)
	if p.full = p.full || len(p.listed) >= maxListed || p.octets+octets > maxListedOctets; p.full {
		p.more++
		return
	}
	p.octets += octets
	if text != r.text {
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
		all = append(all[:len(all):len(all)], problem{keyMore, strings.Replace(moreFields.text, "N", strconv.Itoa(p.more), 1)})
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

// invalidView is the body of a 422.
type invalidView struct {
	Message string   `json:"message"`
	Errors  problems `json:"errors"`
}

// refuseFirst answers 422 with the first problem's text, as single requests do.
func (p problems) refuseFirst(c *gin.Context) { p.refuse(c, p.listed[0].text) }

// refuseBatch answers 422 as batches do.
func (p problems) refuseBatch(c *gin.Context) { p.refuse(c, textInvalid) }

// refuseField answers 422 for one field.
func refuseField(c *gin.Context, r *refusal) {
	var p problems
	p.add(r)
	p.refuseFirst(c)
}

// refuse answers 422.
func (p problems) refuse(c *gin.Context, text string) {
	refusedAs(c, p.code)
	write(c, http.StatusUnprocessableEntity, invalidView{text, p})
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
// wrong is what is wrong with it, nil if nothing; so it is of the readers below.
func sender(v value, required *refusal) (name string, wrong *refusal) {
	if isMissing(v) {
		return "", required
	}
	s, ok := v.text()
	if !ok || len(s) > maxSender {
		return "", senderInvalid
	}
	for i := range len(s) {
		if b := s[i]; (b < '0' || b > '9') && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') {
			return "", senderInvalid
		}
	}
	return s, nil
}

// body reads a message's or a template's text.
func body(v value, required, long *refusal) (s string, wrong *refusal) {
	s, ok := v.text()
	switch {
	case !ok || blank(s) || strings.IndexByte(s, 0) >= 0:
		return "", required
	case longer(s, maxMessage):
		return s, long
	}
	return s, nil
}

// longer tells whether a text has more code points than most.
func longer(s string, most int) bool { return len(s) > most && utf8.RuneCountInString(s) > most }

// number reads a phone number.
func (a *API) number(v value, required, unknown *refusal) (n sms.Number, wrong *refusal) {
	if isMissing(v) {
		return "", required
	}
	s, _ := v.text()
	n, ok := a.opts.Plan.Parse(s)
	if !ok {
		return "", unknown
	}
	return n, nil
}
