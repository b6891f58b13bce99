// Package mail sends mails to people over SMTP, in the background: whoever asks for one never waits for a mail server,
// and cannot tell from the time whether one was sent.
//
// What waits is in memory only, bounded: a mail that is lost with its process can be asked for again. Neither addresses
// nor contents reach the log.
package mail
