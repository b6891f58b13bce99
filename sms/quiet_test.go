package sms

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQuietHours(t *testing.T) {
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	for _, c := range []struct{ hours, at, end string }{
		{"21:00-06:00", "2026-03-01T20:59:59+02:00", ""},
		{"21:00-06:00", "2026-03-01T21:00:00+02:00", "2026-03-02T06:00:00+02:00"},
		{"21:00-06:00", "2026-03-01T23:59:59+02:00", "2026-03-02T06:00:00+02:00"},
		{"21:00-06:00", "2026-03-02T00:00:00+02:00", "2026-03-02T06:00:00+02:00"},
		{"21:00-06:00", "2026-03-02T05:59:59+02:00", "2026-03-02T06:00:00+02:00"},
		{"21:00-06:00", "2026-03-02T06:00:00+02:00", ""},
		// the hour is Burundi's, whatever the time zone of the moment
		{"21:00-06:00", "2026-03-01T19:00:00Z", "2026-03-02T06:00:00+02:00"},
		{"21:00-06:00", "2026-12-31T23:00:00+02:00", "2027-01-01T06:00:00+02:00"},
		{"12:00-14:00", "2026-03-01T11:59:59+02:00", ""},
		{"12:00-14:00", "2026-03-01T12:00:00+02:00", "2026-03-01T14:00:00+02:00"},
		{"12:00-14:00", "2026-03-01T14:00:00+02:00", ""},
		{"00:00-06:30", "2026-03-01T00:00:00+02:00", "2026-03-01T06:30:00+02:00"},
		{"20:00-00:00", "2026-03-01T20:00:00+02:00", "2026-03-02T00:00:00+02:00"},
		{"20:00-00:00", "2026-03-02T00:00:00+02:00", ""},
		{"none", "2026-03-01T12:00:00+02:00", ""},
		{"", "2026-03-01T12:00:00+02:00", ""},
	} {
		hours, err := ParseQuietHours(c.hours)
		if err != nil {
			t.Fatal(err)
		}
		end, quiet := hours.End(at(c.at))
		if quiet != (c.end != "") || quiet && !end.Equal(at(c.end)) {
			t.Errorf("%s at %s: %v, %v, want %q", c.hours, c.at, end, quiet, c.end)
		}
		if again, err := ParseQuietHours(hours.String()); err != nil || again != hours {
			t.Errorf("%s is written %s", c.hours, hours)
		}
	}
	for _, wrong := range []string{"21:00", "21:00-", "-06:00", "21-6", "9:00-17:00", "21:00-24:00", "21:60-06:00",
		"06:00-06:00", "21:00-06:00 ", "21:00–06:00", "None", "x"} {
		if hours, err := ParseQuietHours(wrong); err == nil {
			t.Errorf("%q is taken as %s", wrong, hours)
		}
	}
}

// Quiet hours end within a day, at a moment that is not quiet, and every moment until then is quiet.
func TestQuietHoursEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := QuietHours{rapid.IntRange(0, 1439).Draw(t, "from"), rapid.IntRange(0, 1439).Draw(t, "to")}
		moment := time.Unix(rapid.Int64Range(1.7e9, 2e9).Draw(t, "at"), 0)
		end, quiet := q.End(moment)
		if !quiet {
			return
		}
		if wait := end.Sub(moment); wait <= 0 || wait >= 24*time.Hour {
			t.Fatalf("%s at %s ends after %s", q, moment, wait)
		}
		if _, still := q.End(end); still {
			t.Fatalf("%s at %s is quiet still at its end %s", q, moment, end)
		}
		between := moment.Add(time.Duration(rapid.Float64Range(0, 0.999).Draw(t, "between") * float64(end.Sub(moment))))
		if other, quiet := q.End(between); !quiet || !other.Equal(end) {
			t.Fatalf("%s: from %s it ends at %s, from %s at %s", q, moment, end, between, other)
		}
	})
}
