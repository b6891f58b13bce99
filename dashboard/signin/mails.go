package signin

import (
	"intumwa/accounts/people"
	"intumwa/internal/letters"
	"intumwa/internal/mail"
	"intumwa/texts"
)

// Mails are the mails of signing in and up.
type Mails struct {
	Mailer    *mail.Mailer
	PublicURL string // of the dashboard
}

// link returns an address of this dashboard for a mail. It does not use the request's Host, which is untrusted.
func (m *Mails) link(path string) string { return m.PublicURL + path }

// send queues a mail that its recipient can request again after a loss. For other mails use [letter.Write].
func (m *Mails) send(l *texts.Language, kind, to, subject string, paragraphs ...string) {
	m.Mailer.Send(letters.Mail(l, kind, to, l.T(subject), paragraphs...))
}

func (m *Mails) signUp(l *texts.Language, to, token string) {
	m.send(l, "sign-up", to, "mail.signup.subject", l.T("mail.signup.text"),
		m.link("/sign-up/"+token), l.T("mail.hour"), l.T("mail.ignore"))
}

// Invitation names the inviting person by their verified address, never by text of their choice.
func (m *Mails) Invitation(l *texts.Language, to, from, token string) {
	m.send(l, "invitation", to, "mail.invitation.subject", l.T("mail.invitation.text", from),
		m.link("/invitation/"+token), l.T("mail.invitation.days", int(people.InvitationLife.Hours()/24)),
		l.T("mail.ignore.invitation"))
}

// exists is the mail to a registered user who signs up again.
func (m *Mails) exists(l *texts.Language, to string) {
	m.send(l, "sign-up-again", to, "mail.signup.subject", l.T("mail.exists.text"),
		m.link("/sign-in"), l.T("mail.exists.forgotten"), m.link("/password"), l.T("mail.exists.ignore"))
}

func (m *Mails) reset(l *texts.Language, to, token string) {
	m.send(l, "password", to, "mail.reset.subject", l.T("mail.reset.text"),
		m.link("/password/"+token), l.T("mail.hour"), l.T("mail.ignore"))
}
