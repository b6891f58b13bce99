package dashboard

import (
	"intumwa/accounts"
	"intumwa/messages"
	"intumwa/sms"
)

type homePage struct {
	HasCompany, HasKey bool
	HasNumber, HasSent bool // a verified test number; any message
	Credits            int64
	Live               liveStep
}

// liveStep is how far a company is on its way to sending to all numbers.
type liveStep int

// The steps.
const (
	liveToAsk liveStep = iota // no sender ID was requested
	liveWaits                 // waits for the approval of the company or of a sender ID
	liveDone
)

// Waits and Done are for the page.
func (l liveStep) Waits() bool { return l == liveWaits }

// Done reports whether messages can be sent to all numbers.
func (l liveStep) Done() bool { return l == liveDone }

func liveOf(c *accounts.Company, senders []accounts.SenderRequest) (step liveStep) {
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
	data := homePage{HasCompany: s.Company != nil}
	tokens, err := d.rooms.Accounts.TokensOf(v.ctx(), s.User.ID)
	if err == nil && data.HasCompany {
		data.Credits, err = d.rooms.Ledger.Balance(v.ctx(), s.Company.ID)
	}
	if err == nil && data.HasCompany {
		var m testMode
		m, err = v.testMode(*s.Company)
		data.HasNumber = m.Verified
	}
	if err == nil && data.HasCompany {
		var latest []messages.Record
		latest, _, err = d.rooms.Messages.List(v.ctx(), sms.CompanyID(s.Company.ID), messages.Filter{}, 0, 1)
		data.HasSent = len(latest) > 0
	}
	if err == nil && data.HasCompany {
		var senders []accounts.SenderRequest
		senders, err = d.rooms.Accounts.SenderRequestsOf(v.ctx(), sms.CompanyID(s.Company.ID))
		data.Live = liveOf(s.Company, senders)
	}
	if err != nil {
		return err
	}
	for _, t := range tokens {
		data.HasKey = data.HasKey || t.RevokedAt == nil
	}
	return v.render("home", data)
}
