package api

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// maxReference bounds a client_reference, in code points.
const maxReference = 64

// wrongReference has the refusals of a field that is a client_reference.
type wrongReference struct{ notText, long, unprintable *refusal }

// reference reads a client_reference; missing, null and blank are "".
func (p *problems) reference(v value, wrong wrongReference) string {
	if isMissing(v) {
		return ""
	}
	text, isText := v.text()
	if !isText {
		p.add(wrong.notText)
		return ""
	}
	p.checkReference(text, wrong)
	return text
}

func (p *problems) checkReference(text string, wrong wrongReference) {
	switch {
	case longerThan(text, maxReference):
		p.add(wrong.long)
	case !isPrintable(text):
		p.add(wrong.unprintable)
	}
}

// isPrintable reports whether a text has only visible characters and spaces. A joiner or non-joiner (U+200D, U+200C)
// may be between two of them: emoji and some scripts need them.
func isPrintable(text string) bool {
	for i, r := range text {
		joins := (r == '\u200c' || r == '\u200d') && i > 0 && i+utf8.RuneLen(r) < len(text)
		if !joins && !unicode.IsGraphic(r) {
			return false
		}
	}
	return utf8.ValidString(text)
}

// Bounds of the times of a request.
const (
	// sendAtSlack is how far in the past send_at may lie, because clocks differ and requests take time. Such a message
	// is sent at once.
	sendAtSlack = time.Minute
)

// schedule reads send_at and expire_at and adds their problems.
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
		case at.After(now.Add(sms.MaxAhead)):
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
		case at.After(from.Add(sms.MaxValid)):
			p.add(expireAtFar)
		default:
			s.ExpireAt = at
		}
	}
	return s
}

// readMoment reads a date and time of RFC 3339 with its offset, to the second. An empty text is invalid: the message
// would be sent at once instead of later.
func readMoment(v value) (t time.Time, ok bool) {
	text, _ := v.text()
	t, ok = parseMoment(text)
	return t.UTC().Truncate(time.Second), ok
}

// parseMoment parses a date and time of RFC 3339, also in lower case, with its offset.
func parseMoment(text string) (t time.Time, ok bool) {
	if len(text) < len("2006-01-02T15:04:05Z") || text[len("2006-01-02T15")] != ':' || strings.Contains(text, ",") {
		return t, false // time.Parse is not as strict
	}
	t, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	return t, err == nil
}
