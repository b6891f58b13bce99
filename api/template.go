package api

import (
	"context"
	"strings"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
)

// sendTemplate is POST /v1/sms/template (rule api 4.3).
func (a *API) sendTemplate(c *gin.Context) {
	handleSend(a, c, a.readTemplate, problems.refuseBatch, a.writeAnswer, func(ctx context.Context, p *accounts.Principal, req intake.Template, key *intake.Key) (intake.Answer, error) {
		req.Key = key
		return a.intake.SendTemplate(ctx, p, req)
	})
}

func (a *API) readTemplate(fields value) (req intake.Template, p problems) {
	var text, list value
	var batch whole
	for key, v := range fields.members() {
		switch key {
		case "template":
			text = v
		case "recipients":
			list = v
		}
		batch.read(key, v)
	}
	var wrong *refusal
	if req.Sender, wrong = sender(batch.sender, senderFieldRequired); wrong != nil {
		p.add(wrong)
	}
	template, wrong := body(text, templateRequired, templateLong)
	if wrong != nil {
		p.add(wrong)
		template = "" // a text that is too long to be sent is not searched for placeholders
	}
	req.Template = sms.ParseTemplate(template)
	req.Schedule = p.schedule(batch.sendAt, batch.expireAt)
	switch n := length(list); {
	case n == 0:
		p.add(recipientsEmpty)
	case n > maxItems:
		p.add(recipientsMany)
	default:
		reader := newVariableReader(req.Template.Names())
		req.Recipients = make([]intake.TemplateRecipient, 0, n)
		for item := range list.elements() {
			req.Recipients = append(req.Recipients, a.readRecipient(item, len(req.Recipients), batch, reader, &p))
		}
	}
	return req, p
}

// readRecipient reads one item. An item that is not an object counts as an empty one.
func (a *API) readRecipient(item value, index int, batch whole, reader *variableReader, p *problems) (r intake.TemplateRecipient) {
	var number, variables, name value
	var own whole
	for key, v := range item.members() {
		switch key {
		case "phone_number":
			number = v
		case "variables":
			variables = v
		case "client_reference":
			name = v
		}
		own.read(key, v)
	}
	var wrong *refusal
	if r.Number, wrong = a.number(number, recipientNumberRequired, recipientNumberInvalid); wrong != nil {
		p.addItem(wrong, "recipients", index, "phone_number")
	}
	if r.Reference, wrong = ownName(name, recipientReferenceWrong); wrong != nil {
		p.addItem(wrong, "recipients", index, "client_reference")
	}
	p.misplaced(own, batch, recipientMisplaced, "recipients", index)
	if !variables.isObject() && !variables.isEmptyArray() {
		p.addItem(recipientVariablesRequired, "recipients", index, "variables")
		return r
	}
	var wrongs []wrongVariable
	r.Variables, wrongs = reader.read(variables)
	for _, each := range wrongs {
		refusal := recipientVariableLong
		if each.notText {
			refusal = recipientVariableText
		}
		p.addItem(refusal, "recipients", index, "variables."+each.name)
	}
	return r
}

// isEmptyArray reports whether v is [], which PHP writes for an empty map.
func (v value) isEmptyArray() bool {
	for range v.elements() {
		return false
	}
	return v.isArray()
}

// variableReader reads the variables that a template uses and ignores the others.
// One reader serves all recipients of a request in turn.
type variableReader struct {
	names []string
	index map[string]int
	given []value // of equal keys the last; "" where missing
}

func newVariableReader(names []string) *variableReader {
	r := &variableReader{names: names, index: make(map[string]int, len(names)), given: make([]value, len(names))}
	for i, name := range names {
		r.index[name] = i
	}
	return r
}

// wrongVariable is a variable that is not a text, or too long a text.
type wrongVariable struct {
	name    string
	notText bool
}

// read returns the values of an object's members, nil for null.
func (r *variableReader) read(v value) (values map[string]*string, wrong []wrongVariable) {
	clear(r.given)
	for name, v := range v.members() {
		if i, used := r.index[name]; used {
			r.given[i] = v
		}
	}
	values = make(map[string]*string, len(r.names))
	for i, v := range r.given {
		name := r.names[i]
		switch text, isText := v.text(); {
		case v == "":
		case v.isNull():
			values[name] = nil
		case !isText:
			wrong = append(wrong, wrongVariable{name, true})
		case longerThan(text, maxVariable), strings.IndexByte(text, 0) >= 0:
			wrong = append(wrong, wrongVariable{name, false})
		default:
			values[name] = &text
		}
	}
	return values, wrong
}
