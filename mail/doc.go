// Package mail sends mails to people over SMTP, in the background: whoever asks for one never waits for a mail server,
// and cannot tell from the time whether one was sent.
//
// What waits after [Mailer.Send] is in memory only, bounded: it is for what can be asked for again, such as a link to
// sign up. What must not be lost with a process its room keeps, until [Mailer.Deliver] has sent it. Neither addresses nor
// contents reach the log.
package mail
