package smppserver

import (
	"strconv"
	"time"

	"intumwa/intake"
	"intumwa/smpp"
	"intumwa/sms"
)

// scheduleOf reads schedule_delivery_time and validity_period. A relative validity begins when the message is to be
// sent. A longer one than sms.MaxValid counts as that.
func scheduleOf(r *smpp.Request, now time.Time) (s intake.Schedule, no *refusal) {
	begin := now
	if r.Schedule != "" {
		at, ok := parseTime(r.Schedule, now)
		switch {
		case !ok:
			return s, &refusal{smpp.StatusInvSchedule, "The schedule_delivery_time is not a time in the form YYMMDDhhmmsstnnp."}
		case at.After(now.Add(sms.MaxAhead)):
			return s, &refusal{smpp.StatusInvSchedule, "The schedule_delivery_time is more than 30 days ahead."}
		case at.After(now):
			s.SendAt, begin = at, at
		}
	}
	if r.Validity == "" {
		return s, nil
	}
	end, ok := parseTime(r.Validity, begin)
	switch {
	case !ok:
		return s, &refusal{smpp.StatusInvExpiry, "The validity_period is not a time in the form YYMMDDhhmmsstnnp."}
	case !end.After(begin):
		return s, &refusal{smpp.StatusInvExpiry, "The validity_period has ended."}
	}
	s.ExpireAt = end
	if most := begin.Add(sms.MaxValid); end.After(most) {
		s.ExpireAt = most
	}
	return s, nil
}

// parseTime reads a time of SMPP (SMPP 3.4, 7.1.1): absolute, with tenths of a second and quarters of an hour from UTC,
// or relative to from. A relative year has 365 days and a month 30.
func parseTime(text string, from time.Time) (time.Time, bool) {
	if len(text) != 16 {
		return time.Time{}, false
	}
	var n [8]int // YY MM DD hh mm ss t nn
	for i, at := range [][2]int{{0, 2}, {2, 4}, {4, 6}, {6, 8}, {8, 10}, {10, 12}, {12, 13}, {13, 15}} {
		value, err := strconv.ParseUint(text[at[0]:at[1]], 10, 8)
		if err != nil {
			return time.Time{}, false
		}
		n[i] = int(value)
	}
	switch text[15] {
	case 'R':
		days := n[0]*365 + n[1]*30 + n[2]
		return from.Add(time.Duration(days)*24*time.Hour + time.Duration(n[3])*time.Hour + time.Duration(n[4])*time.Minute +
			time.Duration(n[5])*time.Second), true
	case '+', '-':
	default:
		return time.Time{}, false
	}
	at := time.Date(2000+n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*int(100*time.Millisecond), time.UTC)
	if n[1] < 1 || n[1] > 12 || n[2] < 1 || at.Day() != n[2] || n[3] > 23 || n[4] > 59 || n[5] > 59 || n[7] > 48 {
		return time.Time{}, false
	}
	offset := time.Duration(n[7]) * 15 * time.Minute
	if text[15] == '-' {
		offset = -offset
	}
	return at.Add(-offset), true
}

// formatTime writes an absolute time in UTC.
func formatTime(at time.Time) string { return at.UTC().Format("060102150405") + "000+" }
