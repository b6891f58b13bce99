package sms

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Burundi is its local time: Africa/Bujumbura keeps UTC+2 all year, so that no table of time zones is needed.
var Burundi = time.FixedZone("CAT", 2*60*60)

// QuietHours are the hours of a day, in Burundi's time, in which batches are not sent. The zero QuietHours are none.
type QuietHours struct {
	from, to int // minutes of the day, the first in them and the first behind them; equal: none
}

// NoQuietHours is how quiet hours are written that are none.
const NoQuietHours = "none"

// errQuietHours says how they are written.
var errQuietHours = errors.New("quiet hours are written as 21:00-06:00, or none")

// ParseQuietHours reads "21:00-06:00", from the first minute to the last but one, over midnight where the second comes
// first; "none" and "" are none.
func ParseQuietHours(text string) (q QuietHours, err error) {
	if text == "" || text == NoQuietHours {
		return q, nil
	}
	from, to, _ := strings.Cut(text, "-")
	if q.from, err = minuteOfDay(from); err == nil {
		q.to, err = minuteOfDay(to)
	}
	if err != nil || q.from == q.to {
		return QuietHours{}, errQuietHours
	}
	return q, nil
}

func minuteOfDay(text string) (int, error) {
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return 0, errQuietHours
	}
	return t.Hour()*60 + t.Minute(), nil
}

// String writes them as ParseQuietHours reads them.
func (q QuietHours) String() string {
	if q.from == q.to {
		return NoQuietHours
	}
	return fmt.Sprintf("%02d:%02d-%02d:%02d", q.from/60, q.from%60, q.to/60, q.to%60)
}

// End returns when the quiet hours end that a moment lies in; false when it lies in none.
func (q QuietHours) End(t time.Time) (end time.Time, quiet bool) {
	local := t.In(Burundi)
	minute := local.Hour()*60 + local.Minute()
	over := q.to < q.from // midnight is in them
	switch {
	case q.from == q.to, !over && (minute < q.from || minute >= q.to), over && minute < q.from && minute >= q.to:
		return time.Time{}, false
	}
	year, month, day := local.Date()
	end = time.Date(year, month, day, q.to/60, q.to%60, 0, 0, Burundi)
	if over && minute >= q.from {
		end = end.AddDate(0, 0, 1)
	}
	return end, true
}
