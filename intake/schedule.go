package intake

import (
	"time"

	"intumwa/accounts"
	"intumwa/messages"
	"intumwa/sms"
)

// Schedule says when what a request asks for is to be sent, and when it is to be given up. The zero Schedule: at once, and
// when its validity is over.
type Schedule struct {
	SendAt   time.Time
	ExpireAt time.Time
}

// of gives a message its times. One whose time has not come waits for it.
func (s Schedule) of(m *messages.Message, now time.Time) {
	m.SendAt, m.ExpireAt, m.Later = s.SendAt, s.ExpireAt, s.SendAt.After(now)
}

// RefuseQuiet is for a batch whose time is over before it may be sent.
var RefuseQuiet = sms.Refusal{Reason: "quiet_hours", Text: "The messages would expire before the quiet hours end."}

// afterQuiet puts a batch off that would be sent in its company's quiet hours, to their end.
func (in *Intake) afterQuiet(company *accounts.Company, s Schedule, now time.Time) (Schedule, error) {
	quiet := in.opts.QuietHours
	if company.QuietHours != "" {
		quiet, _ = sms.ParseQuietHours(company.QuietHours) // the database takes no others; any would count as none
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
