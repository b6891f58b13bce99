package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"intumwa/intake"
	"intumwa/sms"
)

// previewView is the size and the cost of a text.
type previewView struct {
	Encoding          string   `json:"encoding"`
	Characters        int      `json:"characters"`
	Segments          int      `json:"segments"`
	Cost              int      `json:"cost"`               // credits
	UnicodeCharacters []string `json:"unicode_characters"` // those that make it UCS-2
}

// preview is POST /v1/sms/preview: the size and the price of a message, or of a
// template with the variables of one recipient. It sends nothing.
func (a *API) preview(c *gin.Context) {
	company, ok := a.companyOf(c)
	if !ok {
		return
	}
	_, fields, done, ok := a.body(c)
	if !ok {
		return
	}
	defer done()
	text, template, variables, problems := readPreview(fields)
	if !problems.none() {
		done()
		problems.refuseFirst(c)
		return
	}
	if template != nil {
		rendered, err := a.intake.Render(company, template, variables)
		if err != nil {
			a.writeError(c, "rendering a preview", err)
			return
		}
		text = rendered
	}
	text = intake.Preview(company, text)
	size := sms.Measure(text)
	view := previewView{Encoding: size.Encoding.String(), Characters: size.Characters, Segments: size.Segments, Cost: size.Segments,
		UnicodeCharacters: sms.UnicodeCharacters(text)}
	if view.UnicodeCharacters == nil {
		view.UnicodeCharacters = []string{}
	}
	writeJSON(c, http.StatusOK, view)
}

// readPreview reads a message, or a template and its optional variables. When both are
// given, the message counts.
func readPreview(fields value) (text string, template *sms.Template, variables map[string]*string, p problems) {
	var message, pattern, values value
	for key, v := range fields.members() {
		switch key {
		case "message":
			message = v
		case "template":
			pattern = v
		case "variables":
			values = v
		}
	}
	var wrong *refusal
	if pattern.isNull() || !message.isNull() {
		if text, wrong = body(message, messageRequired, messageLong); wrong != nil {
			p.add(wrong)
		}
		return text, nil, nil, p
	}
	if text, wrong = body(pattern, templateRequired, templateLong); wrong != nil {
		p.add(wrong)
		return "", nil, nil, p
	}
	template = sms.ParseTemplate(text)
	if !values.isNull() && !values.isObject() && !values.isEmptyArray() {
		p.add(variablesRequired)
		return "", nil, nil, p
	}
	variables, wrongs := newVariableReader(template.Names()).read(values)
	for _, each := range wrongs {
		refusal := variableLong
		if each.notText {
			refusal = variableText
		}
		p.addNamed(refusal, "variables.", each.name)
	}
	return "", template, variables, p
}
