package words

import "time"

// Exact writes a day and the time of day to the second.
func (l *Language) Exact(t time.Time) string {
	return l.Date(t) + ", " + l.Clock(t)
}

// Int is Number for an int.
func (l *Language) Int(n int) string { return l.Number(int64(n)) }
