package following

import (
	"slices"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/dashboard/web"
	"intumwa/messages/lookup"
	"intumwa/sms"
	"intumwa/webhooks"
)

type homePage struct {
	Steps      []homeStep
	Done       bool // all steps are done, or the company sends: they are not shown
	HasCompany bool
	Credits    int64
	Lasts      int64 // days the credits last at this week's pace; 0: unknown
	Today      chartDay
	Rate       string // of today
	Week       chartsPage
	Failures   []homeFailure
	Endpoint   *webhooks.Endpoint // nil: none
}

// homeStep is a step towards the first messages.
type homeStep struct {
	Title, Text, Open string // keys
	Link              string
	State             string // done, waits, next; empty: later
}

// homeFailure is a message that failed, with the reason in words.
type homeFailure struct {
	lookup.Record

	Why string
}

const failuresOnHome = 5

// The steps towards sending to all numbers.
const (
	liveToRequest = "request" // no sender ID was requested
	liveWaits     = "waits"   // for the approval of the company or of a sender ID
	liveDone      = "done"
)

func liveOf(c *accounts.Company, asked []senders.SenderRequest) string {
	step := liveToRequest
	for _, s := range asked {
		switch {
		case s.Approved && c.Approved:
			return liveDone
		case s.Approved, s.State() == senders.Waiting:
			step = liveWaits
		}
	}
	return step
}

// Home is GET /.
func (ps *Pages) Home(v *web.Visit, s *people.Session) error {
	tokens, err := ps.Tokens(v)
	if err != nil {
		return err
	}
	var data homePage
	if data.HasCompany = s.Company != nil; !data.HasCompany && s.User.Administrator {
		data.Done = true
		return v.Render("home", data)
	}
	data.step(s.May(accounts.MayManage), "home.company", "home.company.text", "/company/new", "home.open", data.HasCompany)
	keyed := slices.ContainsFunc(tokens, func(t keys.Token) bool { return t.RevokedAt == nil })
	if data.HasCompany {
		err = ps.homeOf(v, &data, *s.Company, keyed)
	} else {
		data.tests(true, false, false, keyed)
	}
	done, next := data.HasCompany, true
	for i := range data.Steps {
		step := &data.Steps[i]
		if step.State == "" && next {
			step.State, next = "next", false
		}
		done = done && step.State == "done"
	}
	data.Done = data.Done || done
	return v.Page(err, "home", data)
}

// tests adds the steps of test messages, if the user may take them. The key comes last: its page sends to the number.
func (p *homePage) tests(may, verified, sent, keyed bool) {
	p.step(may, "home.number", "home.number.text", "/test-number", "home.number.open", verified)
	p.step(may, "home.first", "home.first.text", "/first", "home.first.open", sent)
	p.step(may, "home.key", "home.key.text", "/keys", "home.open", keyed)
}

// step adds a step if the user may take it, and returns it.
func (p *homePage) step(may bool, title, text, link, open string, done bool) *homeStep {
	s := homeStep{Title: title, Text: text, Link: link, Open: open}
	if done {
		s.State = "done"
	}
	if !may {
		return &s
	}
	p.Steps = append(p.Steps, s)
	return &p.Steps[len(p.Steps)-1]
}

// homeOf reads the data of a company's page: the other steps, the week, the latest failures.
func (ps *Pages) homeOf(v *web.Visit, p *homePage, c accounts.Company, keyed bool) (err error) {
	company := sms.CompanyID(c.ID)
	if p.Credits, err = ps.Deps.Ledger.Balance(v.Ctx(), c.ID); err != nil {
		return err
	}
	test, err := ps.Test.Mode(v, c)
	if err != nil {
		return err
	}
	latest, _, err := ps.Deps.Lookup.List(v.Ctx(), company, lookup.Filter{}, 0, web.MessagesOnPage)
	if err != nil {
		return err
	}
	senders, err := ps.Deps.Senders.SenderRequestsOf(v.Ctx(), company)
	if err != nil {
		return err
	}
	manages, develops := v.Session.May(accounts.MayManage), v.Session.May(accounts.MayDevelop)
	p.tests(develops, test.Verified, len(latest) > 0, keyed)
	facts := companies.Facts{}
	if !c.Approved {
		if facts, err = ps.Deps.Companies.FactsOf(v.Ctx(), company); err != nil {
			return err
		}
	}
	approval := p.step(manages, "home.approval", "home.approval.text", "/company#facts", "home.approval.open", c.Approved)
	if !c.Approved && len(facts.Missing()) == 0 {
		approval.State = "waits"
	}
	live := liveOf(&c, senders)
	if step := p.step(manages, "home.live", "home.live.text", "/senders", "home.live.open",
		live == liveDone); live == liveWaits {
		step.State = "waits"
	}
	if len(latest) == 0 {
		return nil
	}
	p.Done = live == liveDone
	if p.Week, err = ps.chart(v, company, 7); err != nil {
		return err
	}
	p.Today = p.Week.Newest[0]
	p.Rate = p.Today.rate(v.Lang)
	segments := 0
	for i := range latest {
		segments += latest[i].Segments
	}
	if spent := p.Week.Total.Total() * int64(segments) / int64(len(latest)); spent > 0 {
		p.Lasts = p.Credits * int64(p.Week.Days) / spent
	}
	if develops {
		if p.Endpoint, err = ps.Endpoint(v, web.Tenant{Company: c}); err != nil {
			return err
		}
	}
	if !v.Session.May(accounts.MayRead) {
		return nil
	}
	failed, _, err := ps.Deps.Lookup.List(v.Ctx(), company, lookup.Filter{Status: new(sms.Failed)}, 0, failuresOnHome)
	if err != nil {
		return err
	}
	why, err := ps.failures(v, failed...)
	for i := range why {
		p.Failures = append(p.Failures, homeFailure{failed[i], why[i].Text})
	}
	return err
}
