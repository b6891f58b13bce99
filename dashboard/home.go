package dashboard

import (
	"slices"

	"intumwa/accounts"
	"intumwa/messages"
	"intumwa/sms"
)

type homePage struct {
	HasCompany, HasKey bool
	HasNumber, HasSent bool // a verified test number; any message
	Credits            int64
	Live               string // the way to sending to all numbers: liveToAsk, liveWaits or liveDone
}

// The steps on the way to sending to all numbers.
const (
	liveToAsk = "ask"   // no sender ID was requested
	liveWaits = "waits" // for the approval of the company or of a sender ID
	liveDone  = "done"
)

func liveOf(c *accounts.Company, senders []accounts.SenderRequest) string {
	step := liveToAsk
	for _, s := range senders {
		switch {
		case s.Approved && c.Approved:
			return liveDone
		case s.Approved, s.State() == accounts.SenderWaiting:
			step = liveWaits
		}
	}
	return step
}

// home is GET /.
func (d *Dashboard) home(v *visit, s *accounts.Session) error {
	tokens, err := d.rooms.Accounts.TokensOf(v.ctx(), s.User.ID)
	if err != nil {
		return err
	}
	data := homePage{HasKey: slices.ContainsFunc(tokens, func(t accounts.Token) bool { return t.RevokedAt == nil })}
	if s.Company == nil {
		return v.render("home", data)
	}
	data.HasCompany = true
	if data.Credits, err = d.rooms.Ledger.Balance(v.ctx(), s.Company.ID); err != nil {
		return err
	}
	test, err := v.testMode(*s.Company)
	if err != nil {
		return err
	}
	company := sms.CompanyID(s.Company.ID)
	latest, _, err := d.rooms.Messages.List(v.ctx(), company, messages.Filter{}, 0, 1)
	if err != nil {
		return err
	}
	senders, err := d.rooms.Accounts.SenderRequestsOf(v.ctx(), company)
	data.HasNumber, data.HasSent, data.Live = test.Verified, len(latest) > 0, liveOf(s.Company, senders)
	return v.page(err, "home", data)
}
