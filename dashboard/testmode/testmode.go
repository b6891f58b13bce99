// Package testmode is what pages say about an account's test mode: its number, its pool, and the request to try.
package testmode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"intumwa/accounts"
	"intumwa/accounts/testnumbers"
	"intumwa/dashboard/web"
	"intumwa/sms"
)

// Reader reads test modes.
type Reader struct {
	Numbers interface {
		TestNumberOf(ctx context.Context, user int64) (testnumbers.TestNumber, error)
	}
	Ledger interface {
		TestUsed(ctx context.Context, company sms.CompanyID) (segments int, err error)
	}
	APIURL string // {base_url} of the API, for examples: https://sms.example.com/v1
	Sender string
	Quota  int // test segments an account
}

// Mode is an account's test mode (rule api 4.4).
type Mode struct {
	Number           sms.Number // empty: not set yet
	Verified         bool
	Left             int // how often the verified number may still be replaced
	Quota, Remaining int // segments of the pool, and those left
	Sender           string
	Code             *sms.Status // status of the latest code's message, for an unverified number; nil: unknown
}

// CodeFailed reports whether the message with the code has failed.
func (m Mode) CodeFailed() bool { return m.Code != nil && *m.Code == sms.Failed }

// CodePending reports whether the message with the code is pending.
func (m Mode) CodePending() bool { return m.Code != nil && *m.Code == sms.Pending }

// Mode returns the test mode of the signed-in user, for a company.
func (r *Reader) Mode(v *web.Visit, company accounts.Company) (m Mode, err error) {
	m = Mode{Left: testnumbers.MaxReplacements, Quota: r.Quota, Sender: r.Sender}
	number, err := r.Numbers.TestNumberOf(v.Ctx(), v.Session.User.ID)
	switch {
	case errors.Is(err, accounts.ErrNotFound):
	case err != nil:
		return m, err
	default:
		m.Number, m.Verified = number.PhoneNumber, number.Verified
		m.Left = number.Left()
	}
	used, err := r.Ledger.TestUsed(v.Ctx(), sms.CompanyID(company.ID))
	m.Remaining = max(0, r.Quota-used)
	return m, err
}

// headers are the headers of an example request besides Authorization.
var headers = [][2]string{{"Content-Type", "application/json"}, {"Accept", "application/json"}}

// Body returns the body of a request that sends a message.
func Body(number sms.Number, sender, text string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct { // never fails for texts
		Number  sms.Number `json:"phone_number"`
		Sender  string     `json:"sender"`
		Message string     `json:"message"`
	}{number, sender, text})
	return strings.TrimSpace(out.String())
}

// Curl returns a request as a command for a POSIX shell. Without a key it has a placeholder.
func (r *Reader) Curl(key, body string) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	lines := []string{"curl -X POST " + quote(r.APIURL+"/sms"),
		"-H " + quote("Authorization: Bearer "+cmp.Or(key, "YOUR_API_KEY"))}
	for _, h := range headers {
		lines = append(lines, "-H "+quote(h[0]+": "+h[1]))
	}
	return strings.Join(append(lines, "-d "+quote(body)), " \\\n  ")
}
