package dashboard

import (
	"errors"
	"net/http"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/senders"
	"intumwa/internal/throttle"
	"intumwa/sms"
)

const (
	documentTime = 50 * time.Second // for receiving a document: 100 kB a second
	mib          = 1 << 20
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

// Fact returns the label of a fact.
func (p *view) Fact(name string) string { return p.T(factTexts[name].label) }

// likenessTexts maps the kinds of protected names to their texts.
var likenessTexts = map[string]string{
	senders.KnownCarrier: "likeness.carrier", senders.KnownBank: "likeness.bank", senders.KnownWallet: "likeness.wallet", senders.KnownAuthority: "likeness.authority",
}

// likeness returns the warning about a sender ID that resembles a protected name, or "".
func likeness(p *view, name string) string {
	known, ok := senders.LooksLike(name)
	if !ok {
		return ""
	}
	return p.T("likeness.text", known.Name, p.T(likenessTexts[known.Kind]))
}

// stateFacts is POST /company/facts.
func (d *Dashboard) stateFacts(v *visit, t tenant) error {
	f := v.form()
	facts := companies.Facts{NIF: f.Value(companies.FactNIF), TradeRegister: f.Value(companies.FactTradeRegister), Address: f.Value(companies.FactAddress),
		Phone: f.Value(companies.FactPhone), Contact: f.Value(companies.FactContact)}
	err := v.by().SetFacts(v.ctx(), t.company(), facts)
	if wrong, ok := errors.AsType[*companies.FactsError](err); ok {
		for _, name := range wrong.Names {
			f.required(name)
			f.refuse(name, factTexts[name].wrong)
		}
		return d.company(v, t)
	}
	return v.factsDone(t, err, "flash.facts")
}

// factsDone responds to a change of the facts.
func (v *visit) factsDone(t tenant, err error, flash string) error {
	if errors.Is(err, companies.ErrFactsClosed) {
		v.form().notice("facts.closed")
		return v.d.company(v, t)
	}
	return v.done(err, "/company", flash)
}

// uploadDocument is POST /company/document.
func (d *Dashboard) uploadDocument(v *visit, t tenant) error {
	err := v.receiveDocument(t.Company.ID, d.rooms.Tries.Papers, func(name string, file []byte) error {
		return v.by().SetDocument(v.ctx(), t.company(), name, file)
	})
	if err == nil && !v.form().ok() {
		return d.company(v, t)
	}
	return v.factsDone(t, err, "flash.document")
}

// receiveDocument reads a form with a document and stores that, or sets the form's errors. owner has the turns and, unless
// nil, the number of uploads that papers allows.
func (v *visit) receiveDocument(owner int64, papers *throttle.Throttle, store func(name string, file []byte) error) error {
	leave, err := v.uploadTurn(owner, v.d.documents)
	if err != nil {
		return err
	}
	defer leave()
	// The server's read timeout is for forms.
	if err := http.NewResponseController(v.c.Writer).SetReadDeadline(time.Now().Add(documentTime)); err != nil {
		return err
	}
	file, name, err := v.upload(accounts.MaxDocument)
	if err == nil {
		err = v.takeTurn()
	}
	if err != nil {
		return err
	}
	f := v.form()
	switch {
	case len(file) == 0:
		f.refuse("file", "facts.file.none")
	case len(file) > accounts.MaxDocument:
		f.refuse("file", "facts.file.large", accounts.MaxDocument/mib)
	case accounts.DocumentType(name, file) == "":
		f.refuse("file", factTexts[companies.FactDocument].wrong)
	}
	if !f.ok() {
		return nil
	}
	if papers != nil && !papers.Allow(v.ctx(), owner).Allowed {
		return errChanges
	}
	leaveHeavy, err := v.heavyTurn(owner)
	if err != nil {
		return err
	}
	defer leaveHeavy()
	return store(name, file)
}

// deleteDocument is POST /admin/companies/:id/document/delete: a checked document is no longer needed.
func (d *Dashboard) deleteDocument(v *visit) error {
	err := v.by().DeleteDocument(v.ctx(), sms.CompanyID(v.id()))
	return v.done(err, companyPath(v.id()), "flash.document.deleted")
}
