package api

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"intumwa/intake"
	"intumwa/internal/postgres"
)

// maxReference bounds a client_reference, in code points.
const maxReference = 64

// ownName reads a client_reference. One that is missing, null or blank is none.
func ownName(v value, wrong *refusal) (string, *refusal) {
	if isMissing(v) {
		return "", nil
	}
	text, isText := v.text()
	if !isText || !isReference(text) {
		return "", wrong
	}
	return text, nil
}

// isReference reports whether a text can be a client_reference: at most 64 printable
// characters (of the spaces that of ASCII alone), and not only spaces.
func isReference(text string) bool {
	return utf8.ValidString(text) && !longerThan(text, maxReference) && !blank(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// Bounds of the times of a request.
const (
	// sendAtSlack is how far in the past send_at may lie: clocks differ, and a request
	// takes a while. What lies there is sent at once.
	sendAtSlack  = time.Minute
	maxSendAhead = 30 * 24 * time.Hour
	maxExpire    = 3 * 24 * time.Hour // behind the time of sending
)

// schedule reads send_at and expire_at and adds what is wrong with them.
func (p *problems) schedule(send, expire value) (s intake.Schedule) {
	if send.isNull() && expire.isNull() {
		return s
	}
	now := postgres.Now()
	from, known := now, send.isNull() // when it would be sent
	if !send.isNull() {
		at, ok := readMoment(send)
		switch {
		case !ok:
			p.add(sendAtInvalid)
		case at.Before(now.Add(-sendAtSlack)):
			p.add(sendAtPast)
		case at.After(now.Add(maxSendAhead)):
			p.add(sendAtFar)
		default:
			s.SendAt, known = at, true
			if at.After(now) {
				from = at
			}
		}
	}
	if !expire.isNull() {
		at, ok := readMoment(expire)
		switch {
		case !ok:
			p.add(expireAtInvalid)
		case !known:
		case !at.After(from):
			p.add(expireAtEarly)
		case at.After(from.Add(maxExpire)):
			p.add(expireAtFar)
		default:
			s.ExpireAt = at
		}
	}
	return s
}

// readMoment reads a date and time of RFC 3339 with its offset, to the second. An empty text is none: a mistake must not
// send at once what was meant for later.
func readMoment(v value) (t time.Time, ok bool) {
	text, isText := v.text()
	if !isText || len(text) < len("2006-01-02T15:04:05Z") || text[len("2006-01-02T15")] != ':' || strings.Contains(text, ",") {
		return t, false // time.Parse is not as strict
	}
	t, err := time.Parse(time.RFC3339, text)
	return t.UTC().Truncate(time.Second), err == nil
}
