package api

import (
	"strings"
	"time"

	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// wrongLabel has the refusals of a field that is a name of the customer's own.
type wrongLabel struct{ notText, long, unprintable *refusal }

// label reads a client_reference or cost_center; missing, null and blank are "".
func (p *problems) label(v value, wrong wrongLabel) string {
	if isMissing(v) {
		return ""
	}
	text, isText := v.text()
	if !isText {
		p.add(wrong.notText)
		return ""
	}
	p.checkLabel(text, wrong)
	return text
}

func (p *problems) checkLabel(text string, wrong wrongLabel) {
	switch {
	case longerThan(text, sms.MaxLabel):
		p.add(wrong.long)
	case !sms.IsPrintable(text):
		p.add(wrong.unprintable)
	}
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
