package api

import (
	"errors"
	"strings"

	"intumwa/contacts"
	"intumwa/sms"
	"intumwa/texts"
)

// contact reads a contact. With whole the number is required.
func (p *problems) contact(plan *sms.Plan, f *fields, of *refusalsOfContact, whole bool) (e contacts.Entry) {
	if whole || !f.phoneNumber.isNull() {
		e.Number = p.number(plan, f.phoneNumber, of.numberRequired, of.numberInvalid)
	}
	e.Name, e.Language = p.textOrNull(f.name, of.name), p.textOrNull(f.language, of.language)
	if f.fields.isObject() {
		e.Fields = map[string]*string{}
		for name, v := range f.fields.members() {
			text, isText := v.text()
			switch {
			case v == "null":
				e.Fields[name] = nil
			case !isText:
				p.addNamed(of.field, name)
			default:
				e.Fields[name] = &text
			}
			if len(e.Fields) > 2*contacts.MaxFields {
				break
			}
		}
	} else if !f.fields.isNull() && !f.fields.isEmptyArray() {
		p.add(of.fields)
	}
	if f.groups.isArray() {
		e.Groups = []int64{}
		for v := range f.groups.elements() {
			id, ok := idOf(v)
			if !ok || len(e.Groups) == contacts.MaxGroups {
				p.add(of.groups)
				break
			}
			e.Groups = append(e.Groups, id)
		}
	} else if !f.groups.isNull() {
		p.add(of.groups)
	}
	e.Consent = p.consent(f, of)
	for _, fault := range e.Check() {
		p.fault(fault, of)
	}
	return e
}

// consent reads where and when somebody agreed to messages; null or a blank removes it. nil if it is missing.
func (p *problems) consent(f *fields, of *refusalsOfContact) *contacts.Consent {
	source, isText := f.consentSource.text()
	switch {
	case !isText && !f.consentSource.isNull():
		p.add(of.consentSource)
		return nil
	case isMissing(f.consentSource) && !f.consentedAt.isNull():
		p.add(of.consentRequired)
		return nil
	case f.consentSource == "":
		return nil
	case f.consentedAt.isNull():
		return &contacts.Consent{Source: source}
	}
	text, _ := f.consentedAt.text()
	at, ok := instant(text, texts.Bujumbura)
	if !ok || at.In(texts.Bujumbura).Year() < firstConsents { // also of the zero time, which is none
		p.add(of.consentedAt)
		return &contacts.Consent{Source: source}
	}
	return &contacts.Consent{Source: source, At: at}
}

// firstConsents is the first year that a consent can be of, as in the dashboard.
const firstConsents = 2000

// textOrNull reads a text that null or "" removes; nil if it is missing.
func (p *problems) textOrNull(v value, wrong *refusal) *string {
	text, isText := v.text()
	switch {
	case v == "":
		return nil
	case !isText && v != "null":
		p.add(wrong)
		return nil
	}
	return &text
}

// fault adds what package contacts found wrong.
func (p *problems) fault(f *contacts.Fault, of *refusalsOfContact) {
	name, ofField := strings.CutPrefix(f.Field, "fields.")
	switch {
	case f.Key == "contact.wrong.fields":
		p.add(of.fields)
	case ofField:
		p.addNamed(of.field, name)
	default:
		p.add(map[string]*refusal{"phone_number": of.taken, "name": of.name, "language": of.language, "fields": of.fields,
			"groups": of.groups, "consent_source": of.consentSource, "consented_at": of.consentedAt}[f.Field])
	}
}

// faulty are the problems that an error tells.
type faulty struct{ problems }

func faultOf(err error, of *refusalsOfContact, item int) (p faulty) {
	p.item = item
	if fault, is := errors.AsType[*contacts.Fault](err); is {
		p.fault(fault, of)
	}
	return p
}

// first returns the problems as a 422 of a single request, and err if there are none.
func (p faulty) first(err error) error {
	if p.none() {
		return err
	}
	return p.problems.first()
}

// ofBatch returns the problems as a 422 of a batch, and err if there are none.
func (p faulty) ofBatch(err error) error {
	if p.none() {
		return err
	}
	return p.problems.ofBatch()
}
