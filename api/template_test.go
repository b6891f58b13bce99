package api

import (
	"testing"

	"intumwa/sms"
)

// TestVariableNames: letters of any script are letters of a name, and an accent may be a character of its own in the
// template or in the variables. What is not a placeholder stays as text.
func TestVariableNames(t *testing.T) {
	for _, test := range []struct{ name, template, variables, want string }{
		{"accents", "{{prénom}}", `{"prénom":"Éric"}`, "Éric"},
		{"composed in the template only", "{{pr\u00e9nom}}", `{"pre\u0301nom":"Éric"}`, "Éric"},
		{"composed in the variables only", "{{pre\u0301nom}}", `{"prénom":"Éric"}`, "Éric"},
		{"both in one template", "{{pre\u0301nom}} {{pr\u00e9nom}}", `{"prénom":"Éric"}`, "Éric Éric"},
		{"escaped in JSON", "{{prénom}}", `{"pr\u00e9nom":"Éric"}`, "Éric"},
		{"other scripts", "{{имя}}{{名}}", `{"имя":"И","名":"M"}`, "ИM"},
		{"equal after composition, the last counts", "{{é}}", `{"\u00e9":"1","e\u0301":"2"}`, "2"},
		{"blanks and hyphens are no name", "{{nom complet}} {{a-b}}", `{"nom complet":"x","a-b":"y"}`,
			"{{nom complet}} {{a-b}}"},
		{"half open", "{{a} {{a", `{"a":"x"}`, "{{a} {{a"},
		{"full-width braces", "｛｛a｝｝", `{"a":"x"}`, "｛｛a｝｝"},
	} {
		template := sms.ParseTemplate(test.template)
		root, ok := parse(test.variables)
		if !ok {
			t.Fatal(test.variables)
		}
		var p problems
		variables := newVariableReader(template.Names()).read(&p, root, recipientVariableText, recipientVariableLong)
		if got := template.Render(variables); got != test.want || len(template.Missing(variables)) > 0 || p.first() != nil {
			t.Errorf("%s: %q, missing %q", test.name, got, template.Missing(variables))
		}
	}
}
