package dashboard

import (
	"intumwa/accounts/people"
	"intumwa/letters"
	"intumwa/texts"
)

// link returns an address of this dashboard for a mail. It does not use the request's Host, which is untrusted.
func (d *Dashboard) link(path string) string { return d.opts.PublicURL + path }

// mail queues a mail that its recipient can request again after a loss. For other mails use [letter.Write].
func (d *Dashboard) mail(l *texts.Language, kind, to, subject string, paragraphs ...string) {
	d.rooms.Mailer.Send(letters.Mail(l, kind, to, l.T(subject), paragraphs...))
}

func (d *Dashboard) mailSignUp(l *texts.Language, to, token string) {
	d.mail(l, "sign-up", to, "mail.signup.subject", l.T("mail.signup.text"),
		d.link("/sign-up/"+token), l.T("mail.hour"), l.T("mail.ignore"))
}

// mailInvitation names the inviting person by their verified address, never by text of their choice.
func (d *Dashboard) mailInvitation(l *texts.Language, to, from, token string) {
	d.mail(l, "invitation", to, "mail.invitation.subject", l.T("mail.invitation.text", from),
		d.link("/invitation/"+token), l.T("mail.invitation.days", int(people.InvitationLife.Hours()/24)), l.T("mail.ignore.invitation"))
}

// mailExists is the mail to a registered user who signs up again.
func (d *Dashboard) mailExists(l *texts.Language, to string) {
	d.mail(l, "sign-up-again", to, "mail.signup.subject", l.T("mail.exists.text"),
		d.link("/sign-in"), l.T("mail.exists.forgotten"), d.link("/password"), l.T("mail.exists.ignore"))
}

func (d *Dashboard) mailReset(l *texts.Language, to, token string) {
	d.mail(l, "password", to, "mail.reset.subject", l.T("mail.reset.text"),
		d.link("/password/"+token), l.T("mail.hour"), l.T("mail.ignore"))
}
