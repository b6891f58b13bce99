package people

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"intumwa/accounts"
)

const idle = time.Hour

func (a *world) mustOpen(t *testing.T, u User) (token string, s Session) {
	t.Helper()
	token, _, err := a.sessions.OpenSession(t.Context(), u, Browser{Address: "192.0.2.1", Device: "Firefox"})
	if err == nil {
		s, err = a.sessions.SessionByToken(t.Context(), token, idle)
	}
	if err != nil {
		t.Fatal(err)
	}
	return token, s
}

func (a *world) ended(t *testing.T, token string) {
	t.Helper()
	if _, err := a.sessions.SessionByToken(t.Context(), token, idle); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("the session goes on: %v", err)
	}
}

func TestSessionsEnd(t *testing.T) {
	a := newWorld(t)
	u := a.mustUser(t, "aline@example.com")
	company := a.Company(t, u.Email)
	token, s := a.mustOpen(t, u)
	if !s.Passed || s.User.Email != u.Email || s.Company == nil || s.Company.ID != company.ID ||
		s.Address != "192.0.2.1" || s.Device != "Firefox" {
		t.Errorf("%+v", s)
	}
	for _, other := range []string{"", "x", token + "x", strings.Repeat("A", 43)} {
		a.ended(t, other)
	}
	var found int
	if err := a.Pool.QueryRow(t.Context(), `select count(*) from sessions s where s::text like '%' || $1 || '%'`,
		token).Scan(&found); err != nil || found > 0 {
		t.Errorf("the database holds the token itself: %d, %v", found, err)
	}

	a.Exec(t, `update sessions set seen_at = now() - interval '61 minutes'`)
	a.ended(t, token)
	a.Exec(t, `update sessions set seen_at = now() - interval '59 minutes'`)
	if _, err := a.sessions.SessionByToken(t.Context(), token, idle); err != nil {
		t.Error(err)
	}
	a.Exec(t, `update sessions set seen_at = seen_at - interval '2 minutes'`) // the look-up updated it
	if _, err := a.sessions.SessionByToken(t.Context(), token, idle); err != nil {
		t.Error(err)
	}
	a.Exec(t, `update sessions set expires_at = now()`)
	a.ended(t, token)
	if err := a.sessions.Sweep(t.Context(), idle); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := a.Pool.QueryRow(t.Context(), `select count(*) from sessions`).Scan(&left); err != nil || left > 0 {
		t.Errorf("%d left after the sweep, %v", left, err)
	}
}

// A user's sessions are bounded; a new one replaces the oldest.
func TestSessionsAreBounded(t *testing.T) {
	a := newWorld(t)
	u := a.mustUser(t, "aline@example.com")
	first, _ := a.mustOpen(t, u)
	for range maxSessions {
		a.mustOpen(t, u)
	}
	a.ended(t, first)
	if sessions, err := a.sessions.Sessions(t.Context(), u.ID, idle); err != nil || len(sessions) != maxSessions {
		t.Errorf("%d sessions, %v", len(sessions), err)
	}
}

func TestRenewedSession(t *testing.T) {
	a := newWorld(t)
	u := a.mustUser(t, "aline@example.com")
	token, s := a.mustOpen(t, u)
	if _, err := a.sessions.EnterAdmin(t.Context(), s, time.Hour); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("no administrator, and yet: %v", err)
	}
	a.Exec(t, `update users set administrator = true`)
	s, _ = a.sessions.SessionByToken(t.Context(), token, idle)
	renewed, err := a.sessions.EnterAdmin(t.Context(), s, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	a.ended(t, token)
	s, err = a.sessions.SessionByToken(t.Context(), renewed, idle)
	if err != nil || s.AdminUntil == nil || time.Until(*s.AdminUntil) < 50*time.Minute {
		t.Errorf("%+v, %v", s, err)
	}
	if err := a.sessions.LeaveAdmin(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if s, err = a.sessions.SessionByToken(t.Context(), renewed, idle); err != nil || s.AdminUntil != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if err := a.sessions.EndSession(t.Context(), u.ID, s.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.sessions.PassSession(t.Context(), s); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("an ended session is passed: %v", err)
	}
}

func TestKeptTextIsShownOnce(t *testing.T) {
	a := newWorld(t)
	token, _ := a.mustOpen(t, a.mustUser(t, "aline@example.com"))
	other, _ := a.mustOpen(t, a.mustUser(t, "bob@example.com"))
	for _, kind := range []string{"key", "codes"} { // in two tabs
		if err := a.sessions.KeepOnce(t.Context(), token, kind, "secret "+kind); err != nil {
			t.Fatal(err)
		}
	}
	for _, try := range []struct{ token, kind, want string }{
		{other, "key", ""}, {token, "webhook", ""}, {token, "codes", "secret codes"}, {token, "key", "secret key"},
		{token, "key", ""},
	} {
		if got, err := a.sessions.TakeOnce(t.Context(), try.token, try.kind); err != nil || got != try.want {
			t.Errorf("%q, %v, want %q", got, err, try.want)
		}
	}
}

func TestBrowserIsCleaned(t *testing.T) {
	device := Browser{Device: "a\x00b\nc\xff" + strings.Repeat("é", 300)}.clean().Device
	if !strings.HasPrefix(device, "abcé") || len(device) > maxDevice || !utf8.ValidString(device) {
		t.Errorf("%q", device)
	}
}

// TestKnownDevice: a browser's cookie is valid for its user until the password changes.
func TestKnownDevice(t *testing.T) {
	a := newWorld(t)
	u, other := a.mustUser(t, "aline@example.com"), a.mustUser(t, "bob@example.com")
	device, err := a.signIn.NewDevice(t.Context(), u.Email)
	if err != nil {
		t.Fatal(err)
	}
	known := func(email, device string, want bool) {
		t.Helper()
		if got := a.signIn.KnownDevice(t.Context(), email, device); got != want {
			t.Errorf("%q for %s: %v", device, email, got)
		}
	}
	known(" Aline@example.com", device, true)
	for _, forged := range []string{"", "x", device[:43], device[43:] + device[:43], "AAAA" + device[4:],
		device[:43] + strings.Repeat("A", 43)} {
		known(u.Email, forged, false)
	}
	known(other.Email, device, false)
	known("unknown@example.com", device, false)
	_, s := a.mustOpen(t, u)
	if err := a.signIn.ChangePassword(t.Context(), s, testPassword, "another password"); err != nil {
		t.Fatal(err)
	}
	known(u.Email, device, false)
}
