package dashboard

import (
	"time"

	"intumwa/dashboard/words"
)

// period is a stretch of days as a person chose it: both ends are in it, either may be open.
type period struct {
	First, Last string // as the fields hold them: 2026-03-31, or empty
	from, to    time.Time
}

// period reads the parameters from and to; what is no day is as if it were not there.
func (v *visit) period() (p period) {
	if day, err := time.ParseInLocation(time.DateOnly, v.c.Query("from"), words.Bujumbura); err == nil && day.Year() >= 2000 && day.Year() < 3000 {
		p.First, p.from = day.Format(time.DateOnly), day
	}
	if day, err := time.ParseInLocation(time.DateOnly, v.c.Query("to"), words.Bujumbura); err == nil && day.Year() >= 2000 && day.Year() < 3000 {
		p.Last, p.to = day.Format(time.DateOnly), day.AddDate(0, 0, 1)
	}
	return p
}

// says is the period for people to read.
func (p period) says(l *words.Language) string {
	switch {
	case !p.from.IsZero() && !p.to.IsZero():
		return l.T("period.both", l.Date(p.from), l.Date(p.to.Add(-time.Hour)))
	case !p.from.IsZero():
		return l.T("period.from", l.Date(p.from))
	case !p.to.IsZero():
		return l.T("period.to", l.Date(p.to.Add(-time.Hour)))
	}
	return l.T("period.all")
}
