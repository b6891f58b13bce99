package api

import (
	"github.com/gin-gonic/gin"

	"intumwa/intake"
	"intumwa/sms"
)

// sendTemplate is POST /v1/sms/template (rule api 4.3).
func (a *API) sendTemplate(c *gin.Context) {
	raw, fields, done, ok := a.body(c)
	if !ok {
		return
	}
	defer done()
	key, ok := idempotencyKey(c, raw)
	if !ok {
		return
	}
	req, problems := a.readTemplate(fields)
	if !problems.none() {
		done() // the client may take its time to read what is wrong
		problems.refuse(c, textInvalid)
		return
	}
	req.Key = key
	answer, err := a.intake.SendTemplate(background(c), caller(c), req)
	done()
	a.answer(c, answer, err)
}

func (a *API) readTemplate(fields value) (req intake.Template, p problems) {
	var name, text, list value
	for key, v := range fields.members() {
		switch key {
		case "sender":
			name = v
		case "template":
			text = v
		case "recipients":
			list = v
		}
	}
	var wrong *refusal
	if req.Sender, wrong = sender(name, senderFieldRequired); wrong != nil {
		p.add(wrong)
	}
	template, wrong := body(text, templateRequired, templateLong)
	if wrong != nil {
		p.add(wrong)
		template = "" // what is too long to be sent is not searched for placeholders
	}
	req.Template = sms.ParseTemplate(template)
	switch n := length(list); {
	case n == 0:
		p.add(recipientsEmpty)
	case n > maxItems:
		p.add(recipientsMany)
	default:
		reader := newVariableReader(req.Template.Names())
		req.Recipients = make([]intake.TemplateRecipient, 0, n)
		for item := range list.elements() {
			req.Recipients = append(req.Recipients, a.readRecipient(item, len(req.Recipients), reader, &p))
		}
	}
	return req, p
}

// readRecipient reads one item. One that is no object is an empty one.
func (a *API) readRecipient(item value, index int, reader *variableReader, p *problems) (r intake.TemplateRecipient) {
	var number, variables value
	for key, v := range item.members() {
		switch key {
		case "phone_number":
			number = v
		case "variables":
			variables = v
		}
	}
	var wrong *refusal
	if r.Number, wrong = a.number(number, recipientNumberRequired, recipientNumberInvalid); wrong != nil {
		p.addItem(wrong, "recipients", index, "phone_number")
	}
	if !variables.isObject() && !variables.isEmptyArray() {
		p.addItem(recipientVariablesRequired, "recipients", index, "variables")
		return r
	}
	var wrongs []wrongVariable
	r.Variables, wrongs = reader.read(variables)
	for _, each := range wrongs {
		refusal := recipientVariableLong
		if each.noText {
			refusal = recipientVariableText
		}
		p.addItem(refusal, "recipients", index, "variables."+each.name)
	}
	return r
}

// isEmptyArray tells what PHP makes of an empty map.
func (v value) isEmptyArray() bool {
	for range v.elements() {
		return false
	}
	return v.isArray()
}
