package intake

import (
	"time"

	"intumwa/accounts"
	"intumwa/messages"
	"intumwa/sms"
)

// Schedule is when a request's messages are sent and when they expire. The zero Schedule: at once, and at the end of
// their validity.
type Schedule struct {
	SendAt   time.Time
	ExpireAt time.Time
}

// of sets a message's times; before its time it is scheduled.
func (s Schedule) of(m *messages.Message, now time.Time) {
	m.SendAt, m.ExpireAt, m.Scheduled = s.SendAt, s.ExpireAt, s.SendAt.After(now)
}

// RefuseQuiet refuses a batch that expires before it may be sent.
var RefuseQuiet = sms.Refusal{Reason: "quiet_hours", Text: "The messages would expire before the quiet hours end."}

// afterQuiet postpones a batch from its company's quiet hours to their end.
func (in *Intake) afterQuiet(company *accounts.Company, s Schedule, now time.Time) (Schedule, error) {
	quiet := in.opts.QuietHours
	if company.QuietHours != "" {
		quiet, _ = sms.ParseQuietHours(company.QuietHours) // the database takes no invalid ones; they would count as none
	}
	begin := now
	if s.SendAt.After(now) {
		begin = s.SendAt
	}
	end, put := quiet.End(begin)
	if !put {
		return s, nil
	}
	if !s.ExpireAt.IsZero() && !s.ExpireAt.After(end) {
		return s, RefuseQuiet
	}
	s.SendAt = end
	return s, nil
}
