package api

import (
	"context"
	"strings"

	"golang.org/x/text/unicode/norm"

	"intumwa/intake"
	"intumwa/sms"
)

// readTemplate reads a template send (rule api 4.3).
func (a *API) readTemplate(f fields) (req intake.Batch, p problems) {
	req.Sender = p.sender(f.sender, senderFieldRequired, senderInvalid)
	// A text that is too long is empty here, and not searched for placeholders.
	req.Template = sms.ParseTemplate(p.body(f.template, templateRequired, templateLong))
	req.CostCenter = p.label(f.costCenter, costCenterWrong)
	req.Schedule = p.schedule(f.sendAt, f.expireAt)
	if !f.group.isNull() {
		group := p.group(f.group)
		if !f.recipients.isNull() {
			p.add(groupToo)
		}
		template := req.Template
		req.Members = func(ctx context.Context, company int64) ([]intake.Recipient, error) {
			return a.members(ctx, company, group, template)
		}
		return req, p
	}
	variables := newVariableReader(req.Template.Names())
	req.Recipients = readList(&p, f.recipients, recipientsEmpty, recipientsMany, func(item *fields) (r intake.Recipient) {
		r.Number = p.number(a.opts.Plan, item.phoneNumber, ofRecipients.numberRequired, ofRecipients.numberInvalid)
		r.Reference = p.label(item.reference, ofRecipients.reference)
		p.misplaced(item, &f, ofRecipients.misplaced)
		if item.variables.isObject() || item.variables.isEmptyArray() {
			r.Variables = variables.read(&p, item.variables, recipientVariableText, recipientVariableLong)
		} else {
			p.add(recipientVariablesRequired)
		}
		return r
	})
	return req, p
}

// isEmptyArray reports whether v is [], which PHP writes for an empty map.
func (v value) isEmptyArray() bool {
	for range v.elements() {
		return false
	}
	return v.isArray()
}

// variableReader reads the variables that a template uses and ignores others. Names are compared in NFC: "é" may be one
// character or two. One reader serves all recipients of a request, one after another.
type variableReader struct {
	names []string
	of    []int          // the variable of each name
	index map[string]int // the variables by name, in NFC
	given []value        // of equal keys the last; "" where missing
}

func newVariableReader(names []string) *variableReader {
	r := &variableReader{names: names, of: make([]int, len(names)), index: make(map[string]int, len(names))}
	for i, name := range names {
		composed := norm.NFC.String(name)
		at, known := r.index[composed]
		if !known {
			at = len(r.index)
			r.index[composed] = at
		}
		r.of[i] = at
	}
	r.given = make([]value, len(r.index))
	return r
}

// read returns the values of an object's members, nil for null.
func (r *variableReader) read(p *problems, v value, notText, long *refusal) map[string]*string {
	clear(r.given)
	for name, v := range v.members() {
		if i, used := r.index[norm.NFC.String(name)]; used {
			r.given[i] = v
		}
	}
	values := make(map[string]*string, len(r.names))
	for i, name := range r.names {
		v := r.given[r.of[i]]
		switch text, isText := v.text(); {
		case v == "":
		case v.isNull():
			values[name] = nil
		case !isText:
			p.addNamed(notText, name)
		case longerThan(text, sms.MaxVariable), strings.IndexByte(text, 0) >= 0:
			p.addNamed(long, name)
		default:
			values[name] = &text
		}
	}
	return values
}
