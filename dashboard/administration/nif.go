package administration

import (
	"context"
	"errors"
	"time"

	"intumwa/billing/ebms"
	"intumwa/dashboard/web"
)

// askTime bounds the question to the tax office; the page waits for it.
const askTime = 5 * time.Second

// nifAnswer is what the tax office says about a company's NIF: advice for the reviewer.
type nifAnswer struct{ Kind, Text string } // the kind of a notice

// askOBR asks the tax office about a NIF.
func (ps *Pages) askOBR(v *web.Visit, nif string) *nifAnswer {
	ctx, cancel := context.WithTimeout(v.Ctx(), askTime)
	defer cancel()
	name, err := ps.TaxOffice.Taxpayer(ctx, nif)
	switch {
	case err == nil:
		return &nifAnswer{"good", v.Lang.T("ebms.known", nif, name)}
	case errors.Is(err, ebms.ErrUnknown):
		return &nifAnswer{"bad", v.Lang.T("ebms.unknown", nif)}
	}
	return &nifAnswer{"note", v.Lang.T("ebms.away")}
}
