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
	f, done, ok := a.fieldsOf(c)
	if !ok {
		return
	}
	defer done()
	text, template, variables, problems := readPreview(f)
	if err := problems.first(); err != nil {
		done()
		a.writeError(c, err)
		return
	}
	company := caller(c).Company
	if template != nil {
		rendered, err := a.Intake.Render(company, template, variables)
		if err != nil {
			a.writeError(c, err)
			return
		}
		text = rendered
	}
	text = intake.Preview(company, text)
	size := sms.Measure(text)
	view := previewView{Encoding: size.Encoding.String(), Characters: size.Characters, Segments: size.Segments,
		Cost:              size.Segments,
		UnicodeCharacters: sms.UnicodeCharacters(text)}
	if view.UnicodeCharacters == nil {
		view.UnicodeCharacters = []string{}
	}
	writeJSON(c, http.StatusOK, view)
}

// readPreview reads a message, or else a template and its optional variables.
func readPreview(f fields) (text string, template *sms.Template, variables map[string]*string, p problems) {
	if f.template.isNull() || !f.message.isNull() {
		return p.body(f.message, messageRequired, messageLong), nil, nil, p
	}
	if text = p.body(f.template, templateRequired, templateLong); text == "" {
		return "", nil, nil, p
	}
	if !f.variables.isNull() && !f.variables.isObject() && !f.variables.isEmptyArray() {
		p.add(variablesRequired)
		return "", nil, nil, p
	}
	template = sms.ParseTemplate(text)
	variables = newVariableReader(template.Names()).read(&p, f.variables, variableText, variableLong)
	return "", template, variables, p
}
