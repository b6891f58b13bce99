package accounts

import (
	"reflect"
	"testing"

	"intumwa/sms"
)

func TestCompany(t *testing.T) {
	a := newAccounts(t)
	u := a.mustUser(t, "a@example.com")
	_, err := a.CompanyOf(t.Context(), u.ID)
	wants(t, "no company yet", err, ErrNotFound, "has no company")
	c, err := a.createCompany(t.Context(), NewCompany{OwnerEmail: "A@example.com", Name: " Intore ", Verified: true})
	if want := (Company{ID: c.ID, OwnerID: u.ID, Name: "Intore", Verified: true}); err != nil || !reflect.DeepEqual(c, want) {
		t.Fatalf("got %+v, %v, want %+v", c, err, want)
	}
	_, err = a.createCompany(t.Context(), NewCompany{OwnerEmail: "a@example.com", Name: "Second"})
	wants(t, "a second company", err, ErrExists, "a@example.com owns a company already")
	_, err = a.createCompany(t.Context(), NewCompany{OwnerEmail: "b@example.com", Name: "x"})
	wants(t, "an unknown owner", err, ErrNotFound, "b@example.com")
	_, err = a.createCompany(t.Context(), NewCompany{OwnerEmail: "a@example.com"})
	wants(t, "no name", err, ErrInvalid, "company name is empty")

	if c, err = a.SetCompany(t.Context(), c.ID, CompanyChange{Approved: ptr(true)}); err != nil || !c.Approved || !c.Verified {
		t.Errorf("approving: %+v, %v", c, err)
	}
	if c, err = a.SetCompany(t.Context(), c.ID, CompanyChange{Verified: ptr(false), SmartEncoding: ptr(true)}); err != nil ||
		!c.Approved || c.Verified || !c.SmartEncoding {
		t.Errorf("changing the others: %+v, %v", c, err)
	}
	_, err = a.SetCompany(t.Context(), 99, CompanyChange{})
	wants(t, "an unknown id", err, ErrNotFound, "no company with id 99")
	_, err = a.CompanyByID(t.Context(), 99)
	wants(t, "an unknown id", err, ErrNotFound, "no company with id 99")
	if got, err := a.CompanyByID(t.Context(), c.ID); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("CompanyByID: %+v, %v", got, err)
	}
	if got, err := a.CompanyOf(t.Context(), u.ID); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("CompanyOf: %+v, %v", got, err)
	}
	a.mustUser(t, "b@example.com")
	second := a.mustCompany(t, "b@example.com")
	if got, err := a.Companies(t.Context(), c.ID, 10); err != nil || len(got) != 1 || got[0].ID != second.ID {
		t.Errorf("Companies: %+v, %v", got, err)
	}
}

// TestQuietHoursOfAll: the database refuses unreadable quiet hours. A company that has such nevertheless counts as
// having none, and the others keep theirs.
func TestQuietHoursOfAll(t *testing.T) {
	a := newAccounts(t)
	a.mustUser(t, "a@example.com")
	a.mustUser(t, "b@example.com")
	odd, even := a.mustCompany(t, "a@example.com"), a.mustCompany(t, "b@example.com")
	a.exec(t, `update companies set quiet_hours = '21:00-06:00' where id = $1`, even.ID)
	for _, text := range []string{"08:00-08:00", "24:00-06:00", "", "21:00"} {
		if _, err := a.pool.Exec(t.Context(), `update companies set quiet_hours = $2 where id = $1`, odd.ID, text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	a.exec(t, `alter table companies drop constraint companies_quiet_hours_check`)
	a.exec(t, `update companies set quiet_hours = '08:00-08:00' where id = $1`, odd.ID)
	own, err := a.QuietHours(t.Context())
	if err != nil || len(own) != 2 || own[odd.ID].String() != sms.NoQuietHours || own[even.ID].String() != "21:00-06:00" {
		t.Errorf("%v, %v", own, err)
	}
}

func TestSender(t *testing.T) {
	a := newAccounts(t)
	a.mustUser(t, "a@example.com")
	company := a.mustCompany(t, "a@example.com")
	s := a.mustSender(t, company.ID, "Intore")
	a.mustSender(t, company.ID, "INTORE") // case counts
	_, err := a.CreateSender(t.Context(), company.ID, "Intore", "BI", false)
	wants(t, "a duplicate", err, ErrExists, "has a sender Intore already")
	_, err = a.CreateSender(t.Context(), 99, "Other", "", false)
	wants(t, "an unknown company", err, ErrNotFound, "no company with id 99")
	for _, name := range []string{"", "twelve chars", "TwelveLetter", "a-b", "é", "+25779", " a"} {
		_, err := a.CreateSender(t.Context(), company.ID, name, "", false)
		wants(t, name, err, ErrInvalid, "not 1-11 alphanumeric")
	}
	_, err = a.CreateSender(t.Context(), company.ID, "INTUMWATEST", "", false)
	wants(t, "the test sender", err, ErrInvalid, "test sender")
	for _, country := range []string{"B", "BDI", "1A"} {
		_, err := a.CreateSender(t.Context(), company.ID, "Other", country, false)
		wants(t, country, err, ErrInvalid, "country code")
	}
	if r, err := a.SetSender(t.Context(), s.ID, true); err != nil || !reflect.DeepEqual(r.Sender, Sender{ID: s.ID, Name: "Intore", Country: "BI", Approved: true}) {
		t.Errorf("SetSender: %+v, %v", r, err)
	}
	_, err = a.SetSender(t.Context(), 99, true)
	wants(t, "an unknown id", err, ErrNotFound, "no sender with id 99")
	if all, err := a.SendersOf(t.Context(), company.ID); err != nil || len(all) != 2 {
		t.Errorf("SendersOf: %+v, %v", all, err)
	}
}
