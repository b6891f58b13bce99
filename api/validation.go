package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"intumwa/sms"
)

// maxItems bounds a batch (rule api 8).
const maxItems = 500

// textInvalid is the message of every 422 of a batch (rule choices 1.6).
const textInvalid = "The given data was invalid."

// Limits of the failing fields in a response, in number and in bytes: their paths contain names that the client chose.
// A bulk of 500 with both fields wrong is listed completely (rule choices 1.6).
const (
	maxListed      = 2000
	maxListedBytes = 1 << 20
)

// Ends of the texts that begin with "The <field>".
const (
	endRequired     = " field is required."
	endNumber       = " field must be a valid Burundi (+257) number."
	endMessageLong  = " field must not exceed 600 characters."
	endVariableLong = " field must not exceed 255 characters."
	endText         = " field must be a string."
	endReference    = " field must contain printable characters only."
	endReferenceToo = " field must not exceed 64 characters."
	endWhole        = " field must be given for the whole request."
	endParameter    = " parameter is not known."
	endEmpty        = " parameter must not be empty."
	endSender       = " field must be 1-11 alphanumeric characters."
)

// moreKey is the last key of an incomplete list.
const moreKey = "more"

// problems are the failures of a validation, in the order of the checks (rule api 7.1). A field fails for one reason
// only. Problems beyond the limits are counted, not listed.
type problems struct {
	item   int    // the list's item under examination
	code   string // of the first
	listed []problem
	size   int // bytes of the listed problems
	more   int // failing fields that are not listed
	full   bool
}

type problem struct{ field, text string }

// add adds a problem; N in the refusal's field is the current item.
func (p *problems) add(r *refusal) { p.addNamed(r, "K") }

// addNamed adds a problem of a field whose name, K in the refusal's field, comes from the client.
func (p *problems) addNamed(r *refusal, name string) {
	if p.code == "" {
		p.code = r.code
	}
	if p.full {
		p.more++
		return
	}
	field, text := r.field, r.text
	if list, rest, ok := strings.Cut(field, ".N."); ok {
		field = list + "." + strconv.Itoa(p.item) + "." + rest
	}
	if before, ok := strings.CutSuffix(field, "K"); ok {
		field = before + name
	}
	if field != r.field {
		text = "The " + field + r.end()
	}
	size := len(field) + len(text)
	if p.full = len(p.listed) >= maxListed || p.size+size > maxListedBytes; p.full {
		p.more++
		return
	}
	p.size += size
	p.listed = append(p.listed, problem{field, text})
}

// none reports whether there are no problems.
func (p *problems) none() bool { return len(p.listed) == 0 && p.more == 0 }

// MarshalJSON writes an object of field paths and their texts.
func (p problems) MarshalJSON() ([]byte, error) {
	all := p.listed
	if p.more > 0 {
		all = append(all[:len(all):len(all)], problem{
			moreKey, strings.Replace(moreFields.text, "N", strconv.Itoa(p.more), 1)})
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

// invalidView is the body of a 422, as an error.
type invalidView struct {
	Message string   `json:"message"`
	Errors  problems `json:"errors"`
}

// Error returns the first problem.
func (v invalidView) Error() string { return v.Message }

// first returns the problems as a 422 of a single request, with the first one's text; nil when there are none.
func (p problems) first() error {
	if p.none() {
		return nil
	}
	return invalidView{p.listed[0].text, p}
}

// ofBatch returns the problems as a 422 of a batch, with textInvalid; nil when there are none.
func (p problems) ofBatch() error {
	if p.none() {
		return nil
	}
	return invalidView{textInvalid, p}
}

// isMissing reports whether a required string is missing: no field, null, or only whitespace (rule choices 1.4).
func isMissing(v value) bool {
	if v.isNull() {
		return true
	}
	s, isString := v.text()
	return isString && blank(s)
}

func blank(s string) bool { return strings.TrimLeftFunc(s, unicode.IsSpace) == "" }

// sender reads a sender's name: 1 to 11 ASCII letters and digits (rule api 8). It may be missing if required is nil.
func (p *problems) sender(v value, required, invalid *refusal) string {
	if isMissing(v) {
		if required != nil {
			p.add(required)
		}
		return ""
	}
	s, _ := v.text()
	if !sms.ValidSender(s) {
		p.add(invalid)
	}
	return s
}

// body reads the text of a message or template; an invalid one is empty.
func (p *problems) body(v value, required, long *refusal) string {
	s, ok := v.text()
	switch {
	case !ok || blank(s) || strings.IndexByte(s, 0) >= 0:
		p.add(required)
	case longerThan(s, sms.MaxText):
		p.add(long)
	default:
		return s
	}
	return ""
}

// longerThan reports whether a text has more code points than most.
func longerThan(s string, most int) bool { return len(s) > most && utf8.RuneCountInString(s) > most }

// number reads a phone number of the plan.
func (p *problems) number(plan *sms.Plan, v value, required, invalid *refusal) sms.Number {
	if isMissing(v) {
		p.add(required)
		return ""
	}
	s, _ := v.text()
	n, ok := plan.Parse(s)
	if !ok {
		p.add(invalid)
	}
	return n
}
