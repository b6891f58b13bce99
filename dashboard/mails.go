package dashboard

import (
	"strings"

	"intumwa/dashboard/words"
	"intumwa/mail"
)

// link is an address of this dashboard as it stands in a mail: never made of what a request says.
func (d *Dashboard) link(path string) string { return d.opts.PublicURL + path }

// newMail makes a mail of paragraphs. None is made of what a stranger wrote: nobody can have us mail a text of his to
// others.
func newMail(l *words.Language, kind, to, subject string, paragraphs ...string) mail.Message {
	text := strings.Join(append(append([]string{l.T("mail.hello")}, paragraphs...), l.T("mail.signature")), "\n\n") + "\n"
	return mail.Message{Kind: kind, To: to, Subject: subject, Text: text}
}

// send mails what whoever waits for it can ask for again, should it be lost; the rest is for [write].
func (d *Dashboard) send(l *words.Language, kind, to, subject string, paragraphs ...string) {
	d.rooms.Mailer.Send(newMail(l, kind, to, l.T(subject), paragraphs...))
}

func (d *Dashboard) mailSignUp(l *words.Language, to, token string) {
	d.send(l, "sign-up", to, "mail.signup.subject", l.T("mail.signup.text"),
		d.link("/sign-up/"+token), l.T("mail.hour"), l.T("mail.ignore"))
}

// mailExists goes to whoever has an account and wants another.
func (d *Dashboard) mailExists(l *words.Language, to string) {
	d.send(l, "sign-up-again", to, "mail.signup.subject", l.T("mail.exists.text"),
		d.link("/sign-in"), l.T("mail.exists.forgotten"), d.link("/password"), l.T("mail.exists.ignore"))
}

func (d *Dashboard) mailReset(l *words.Language, to, token string) {
	d.send(l, "password", to, "mail.reset.subject", l.T("mail.reset.text"),
		d.link("/password/"+token), l.T("mail.hour"), l.T("mail.ignore"))
}
