package texts

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bujumbura is the zone of every time shown: Burundi keeps UTC+2 all year.
var Bujumbura = time.FixedZone("CAT", 2*60*60)

var months = map[string][12]string{
	"en": {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
	"fr": {"janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.", "déc."},
}

// Number returns a whole number, an int or int64, with separated thousands.
func (l *Language) Number(number any) string {
	n := whole(number)
	separator := "\u202f" // narrow and non-breaking
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

// Amount returns a decimal number, as it is written in English without separators, with the language's.
func (l *Language) Amount(text string) string {
	sign, point := "", ","
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, text = "−", rest
	}
	separator := "\u202f"
	if l.Tag == "en" {
		separator, point = ",", "."
	}
	digits, decimals, fraction := strings.Cut(text, ".")
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + separator + digits[at:]
	}
	if fraction {
		digits += point + decimals
	}
	return sign + digits
}

// whole returns the value of an int or int64.
func whole(n any) int64 {
	if n, ok := n.(int); ok {
		return int64(n)
	}
	return n.(int64)
}

// Decimal returns a number of tenths with the language's decimal separator.
func (l *Language) Decimal(tenths int64) string {
	point := ","
	if l.Tag == "en" {
		point = "."
	}
	return strconv.FormatInt(tenths/10, 10) + point + strconv.FormatInt(tenths%10, 10)
}

// Date returns a day.
func (l *Language) Date(t time.Time) string {
	t = t.In(Bujumbura)
	return fmt.Sprintf("%d %s %d", t.Day(), months[l.Tag][t.Month()-1], t.Year())
}

// Month returns a month, in the time's own zone.
func (l *Language) Month(t time.Time) string {
	return fmt.Sprintf("%s %d", months[l.Tag][t.Month()-1], t.Year())
}

// Time returns a day and the time of day.
func (l *Language) Time(t time.Time) string {
	return l.Date(t) + ", " + t.In(Bujumbura).Format("15:04")
}

// Clock returns the time of day to the second.
func (l *Language) Clock(t time.Time) string { return t.In(Bujumbura).Format("15:04:05") }

// Moment returns a day and the time of day to the second.
func (l *Language) Moment(t time.Time) string { return l.Date(t) + ", " + l.Clock(t) }

// Machine returns a time for the datetime attribute.
func (l *Language) Machine(t time.Time) string { return t.In(Bujumbura).Format(time.RFC3339) }

// Day returns a day without its year, in the time's own zone.
func (l *Language) Day(t time.Time) string {
	return fmt.Sprintf("%d %s", t.Day(), months[l.Tag][t.Month()-1])
}
