package words

import (
	"fmt"
	"strconv"
	"time"
)

// Bujumbura is the zone of every time that is shown: Burundi keeps UTC+2 all year.
var Bujumbura = time.FixedZone("CAT", 2*60*60)

var months = map[string][12]string{
	"en": {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
	"fr": {"janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.", "déc."},
}

// Number writes a whole number with its thousands apart.
func (l *Language) Number(n int64) string {
	separator := "\u202f" // narrow, and no line breaks there
	if l.Tag == "en" {
		separator = ","
	}
	digits, sign := strconv.FormatInt(n, 10), ""
	if n < 0 {
		digits, sign = digits[1:], "−"
	}
	out := ""
	for len(digits) > 3 {
		out = separator + digits[len(digits)-3:] + out
		digits = digits[:len(digits)-3]
	}
	return sign + digits + out
}

// Whole is Number of an int.
func (l *Language) Whole(n int) string { return l.Number(int64(n)) }

// Date writes a day.
func (l *Language) Date(t time.Time) string {
	t = t.In(Bujumbura)
	names, ok := months[l.Tag]
	if !ok {
		return t.Format("02/01/2006")
	}
	return fmt.Sprintf("%d %s %d", t.Day(), names[t.Month()-1], t.Year())
}

// Time writes a day and the time of day.
func (l *Language) Time(t time.Time) string {
	return l.Date(t) + ", " + t.In(Bujumbura).Format("15:04")
}

// Clock writes the time of day to the second.
func (l *Language) Clock(t time.Time) string { return t.In(Bujumbura).Format("15:04:05") }

// Moment writes a day and the time of day to the second.
func (l *Language) Moment(t time.Time) string { return l.Date(t) + ", " + l.Clock(t) }

// Machine writes a time for the datetime attribute.
func (l *Language) Machine(t time.Time) string { return t.In(Bujumbura).Format(time.RFC3339) }

// Day writes a day without its year. It takes the date as it stands, whatever its zone.
func (l *Language) Day(t time.Time) string {
	names, ok := months[l.Tag]
	if !ok {
		return t.Format("02/01")
	}
	return fmt.Sprintf("%d %s", t.Day(), names[t.Month()-1])
}
