package sms

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Burundi is local time: Africa/Bujumbura is UTC+2 all year, so no time zone database is needed.
var Burundi = time.FixedZone("CAT", 2*60*60)

// QuietHours are the hours of a day, in Burundi's time, in which no batches are sent. The zero value is none.
type QuietHours struct {
	from, to int // minutes of the day: the first quiet one and the first one after; equal: none
}

// NoQuietHours is the text for no quiet hours.
const NoQuietHours = "none"

// errQuietHours describes the format.
var errQuietHours = errors.New("quiet hours are written as 21:00-06:00, or none")

// ParseQuietHours parses "21:00-06:00": quiet from 21:00 until 06:00, over midnight if the second time is earlier;
// "none" and "" are none.
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

// String returns the text that ParseQuietHours parses.
func (q QuietHours) String() string {
	if q.from == q.to {
		return NoQuietHours
	}
	return fmt.Sprintf("%02d:%02d-%02d:%02d", q.from/60, q.from%60, q.to/60, q.to%60)
}

// End returns the end of the quiet hours at a moment; false when the moment is not quiet.
func (q QuietHours) End(t time.Time) (end time.Time, quiet bool) {
	local := t.In(Burundi)
	minute := local.Hour()*60 + local.Minute()
	over := q.to < q.from // over midnight
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
