package settings

import (
	"errors"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/senders"
	"intumwa/dashboard/web"
	"intumwa/sms"
)

// factTexts maps the facts to their texts: the label, and the field's error.
var factTexts = map[string]struct{ label, wrong string }{
	companies.FactNIF:           {"facts.nif", "facts.nif.wrong"},
	companies.FactTradeRegister: {"facts.register", "facts.register.wrong"},
	companies.FactAddress:       {"facts.address", "facts.address.wrong"},
	companies.FactPhone:         {"facts.phone", "facts.phone.wrong"},
	companies.FactContact:       {"facts.contact", "facts.contact.wrong"},
	companies.FactDocument:      {"facts.document", "facts.file.wrong"},
}

// factOf returns the label of a fact.
func factOf(p *web.View, name string) string { return p.T(factTexts[name].label) }

// likenessTexts maps the kinds of protected names to their texts.
var likenessTexts = map[string]string{
	senders.KnownCarrier: "likeness.carrier", senders.KnownBank: "likeness.bank", senders.KnownWallet: "likeness.wallet",
	senders.KnownAuthority: "likeness.authority",
}

// likeness returns the warning about a sender ID that resembles a protected name, or "".
func likeness(p *web.View, name string) string {
	known, ok := senders.LooksLike(name)
	if !ok {
		return ""
	}
	return p.T("likeness.text", known.Name, p.T(likenessTexts[known.Kind]))
}

// StateFacts is POST /company/facts.
func (ps *Pages) StateFacts(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	facts := companies.Facts{NIF: f.Value(companies.FactNIF), TradeRegister: f.Value(companies.FactTradeRegister),
		Address: f.Value(companies.FactAddress),
		Phone:   f.Value(companies.FactPhone), Contact: f.Value(companies.FactContact)}
	err := ps.By(v).SetFacts(v.Ctx(), t.CompanyID(), facts)
	if wrong, ok := errors.AsType[*companies.FactsError](err); ok {
		for _, name := range wrong.Names {
			f.Required(name)
			f.Refuse(name, factTexts[name].wrong)
		}
		return ps.Company(v, t)
	}
	return ps.factsDone(v, t, err, "flash.facts")
}

// factsDone responds to a change of the facts.
func (ps *Pages) factsDone(v *web.Visit, t web.Tenant, err error, flash string) error {
	if errors.Is(err, companies.ErrFactsClosed) {
		v.Form().Fail("facts.closed")
		return ps.Company(v, t)
	}
	return v.Done(err, "/company", flash)
}

// UploadDocument is POST /company/document.
func (ps *Pages) UploadDocument(v *web.Visit, t web.Tenant) error {
	err := v.ReceiveDocument(t.Company.ID, ps.Papers, func(name string, file []byte) error {
		return ps.By(v).SetDocument(v.Ctx(), t.CompanyID(), name, file)
	})
	if err == nil && !v.Form().OK() {
		return ps.Company(v, t)
	}
	return ps.factsDone(v, t, err, "flash.document")
}

// Document is GET /company/document.
func (ps *Pages) Document(v *web.Visit, t web.Tenant) error {
	return ps.sendFacts(v, t.Company.ID, t.CompanyID())
}

// AdminDocument is GET /admin/companies/:id/document.
func (ps *Pages) AdminDocument(v *web.Visit) error {
	return ps.sendFacts(v, v.Session.User.ID, sms.CompanyID(v.ID()))
}

// sendFacts responds with a company's document. owner has the turn.
func (ps *Pages) sendFacts(v *web.Visit, owner int64, company sms.CompanyID) error {
	return v.SendDocument(owner, int64(company), func() (accounts.Document, error) {
		facts, err := ps.Deps.Companies.FactsOf(v.Ctx(), company)
		return facts.Document, err
	}, func(document accounts.Document, from, size int) ([]byte, error) {
		return ps.Deps.Companies.DocumentPart(v.Ctx(), company, document, from, size)
	})
}
