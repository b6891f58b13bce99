package api

// fields are the fields of a request's body, or of an item in one. Unknown fields are ignored.
type fields struct {
	phoneNumber, sender, message, reference, costCenter, sendAt, expireAt value
	messages, template, recipients, variables, optOuts, code              value

	group, contacts, name, language, fields, groups, consentSource, consentedAt value

	locale, codeLength, ttl, amount, payee, appHash, webDomain, endUser, converted value
}

// fields reads an object's fields; any other value has none.
func (v value) fields() (f fields) {
	for name, v := range v.members() {
		switch name {
		case "phone_number":
			f.phoneNumber = v
		case "sender":
			f.sender = v
		case "message":
			f.message = v
		case "client_reference":
			f.reference = v
		case "cost_center":
			f.costCenter = v
		case "send_at":
			f.sendAt = v
		case "expire_at":
			f.expireAt = v
		case "messages":
			f.messages = v
		case "template":
			f.template = v
		case "recipients":
			f.recipients = v
		case "variables":
			f.variables = v
		case "opt_outs":
			f.optOuts = v
		case "code":
			f.code = v
		case "group":
			f.group = v
		case "contacts":
			f.contacts = v
		case "name":
			f.name = v
		case "language":
			f.language = v
		case "fields":
			f.fields = v
		case "groups":
			f.groups = v
		case "consent_source":
			f.consentSource = v
		case "consented_at":
			f.consentedAt = v
		case "locale":
			f.locale = v
		case "code_length":
			f.codeLength = v
		case "ttl":
			f.ttl = v
		case "amount":
			f.amount = v
		case "payee":
			f.payee = v
		case "app_hash":
			f.appHash = v
		case "web_domain":
			f.webDomain = v
		case "end_user_id":
			f.endUser = v
		case "converted":
			f.converted = v
		}
	}
	return f
}

// readList reads a list's items with read, unless there are none or too many. An item that is not an object has no
// fields.
func readList[T any](p *problems, list value, empty, many *refusal, read func(*fields) T) []T {
	return readListOf(p, list, maxItems, empty, many, read)
}

// readListOf is readList for lists of another length.
func readListOf[T any](p *problems, list value, most int, empty, many *refusal, read func(*fields) T) []T {
	n := 0
	for range list.elements() {
		if n++; n > most {
			p.add(many)
			return nil
		}
	}
	if n == 0 {
		p.add(empty)
		return nil
	}
	items := make([]T, 0, n)
	var f fields
	for item := range list.elements() {
		p.item = len(items)
		f = item.fields()
		items = append(items, read(&f))
	}
	return items
}
