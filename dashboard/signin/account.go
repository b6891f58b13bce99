package signin

import (
	"strings"
	"time"

	"intumwa/accounts/people"
	"intumwa/dashboard/web"
)

type accountPage struct {
	TwoStep  people.SecondFactor
	Sessions []people.Session
	Least    int
}

// Account is GET /account.
func (ps *Pages) Account(v *web.Visit, s *people.Session) (err error) {
	data := accountPage{Least: people.MinPassword}
	if data.TwoStep, err = ps.Deps.SignIn.SecondFactorOf(v.Ctx(), s.User.ID); err != nil {
		return err
	}
	data.Sessions, err = ps.Deps.Sessions.Sessions(v.Ctx(), s.User.ID, ps.SessionIdle)
	return v.Page(err, "account", data)
}

// EndSession is POST /account/sessions/:id/end.
func (ps *Pages) EndSession(v *web.Visit, s *people.Session) error {
	return v.Done(ps.Deps.Sessions.EndSession(v.Ctx(), s.User.ID, v.ID()), "/account", "flash.session")
}

// SignOutEverywhere is POST /account/sign-out.
func (ps *Pages) SignOutEverywhere(v *web.Visit, s *people.Session) error {
	if err := ps.Deps.Sessions.EndSessions(v.Ctx(), s.User.ID, 0); err != nil {
		return err
	}
	v.DropCookie(web.SessionCookie)
	return v.Redirect("/sign-in", "")
}

// Words in a User-Agent that identify browsers and systems, in search order: every browser also names several
// others.
var (
	browsers = [][2]string{{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser", "Samsung Internet"},
		{"Firefox", "Firefox"},
		{"FxiOS", "Firefox"}, {"CriOS", "Chrome"}, {"Chrome", "Chrome"}, {"Safari", "Safari"}, {"curl", "curl"}}
	systems = [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"},
		{"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}
)

// deviceName returns the browser and the system of a User-Agent in two words; empty when both are unknown.
func deviceName(agent string) string {
	var words []string
	for _, table := range [][][2]string{browsers, systems} {
		for _, row := range table {
			if strings.Contains(agent, row[0]) {
				words = append(words, row[1])
				break
			}
		}
	}
	return strings.Join(words, ", ")
}

// ChooseLanguage is POST /language: it stores the language in a cookie and in the account.
func (ps *Pages) ChooseLanguage(v *web.Visit) error {
	f := v.Form()
	if chosen, ok := ps.Words.ByTag(f.Value("to")); ok {
		v.SetCookie(web.LanguageCookie, chosen.Tag, 365*24*time.Hour)
		if v.Session != nil {
			if err := ps.Deps.People.SetLanguage(v.Ctx(), v.Session.User.ID, chosen.Tag); err != nil {
				return err
			}
		}
	}
	return v.Redirect(web.LocalPath(f.Value("next")), "")
}
