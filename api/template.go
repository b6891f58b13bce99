package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
)

// sendTemplate is POST /v1/sms/template (rule api 4.3).
func (a *API) sendTemplate(c *gin.Context) {
	accept(a, c, a.readTemplate, problems.refuseBatch, a.answer, func(ctx context.Context, p *accounts.Principal, req intake.Template, key *intake.Key) (intake.Answer, error) {
		req.Key = key
		return a.intake.SendTemplate(ctx, p, req)
	})
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
