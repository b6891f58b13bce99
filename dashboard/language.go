package dashboard

import "time"

// chooseLanguage is POST /language: the browser remembers it, and so does the account.
func (d *Dashboard) chooseLanguage(v *visit) {
	f := v.form()
	if f == nil {
		return
	}
	if chosen, ok := d.words.ByTag(f.Value("to")); ok {
		v.setCookie(languageCookie, chosen.Tag, 365*24*time.Hour)
		if v.session != nil {
			if err := d.rooms.Accounts.SetLanguage(v.ctx(), v.session.User.ID, chosen.Tag); err != nil {
				v.fail("storing a language", err)
				return
			}
		}
	}
	v.redirect(localPath(f.Value("next")), "")
}
