package intake

import (
	"intumwa/accounts"
	"intumwa/sms"
)

// Preview answers the text that a company's message is sent as, which differs
// from text only if the company has smart encoding.
func Preview(company *accounts.Company, text string) string {
	body, _, _ := size(company.SmartEncoding, text)
	return body
}

// Render answers the text of a template for one recipient, or the refusal that
// a template send to them alone would get.
func (in *Intake) Render(company *accounts.Company, template *sms.Template, variables map[string]*string) (string, error) {
	if missing := template.Missing(variables); missing != nil {
		return "", RefuseVariables(ordinal(0), missing)
	}
	text := template.Render(variables)
	switch _, _, segments := size(company.SmartEncoding, text); {
	case segments == 0:
		return "", RefuseRecipientEmpty(ordinal(0))
	case segments > in.opts.MaxSegments:
		return "", RefuseRecipientLong(ordinal(0))
	}
	return text, nil
}
