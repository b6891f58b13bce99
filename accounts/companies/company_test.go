package companies

import (
	"reflect"
	"testing"

	"intumwa/accounts"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

func TestCompany(t *testing.T) {
	a := newWorld(t)
	u := a.User(t, "a@example.com")
	_, err := a.companies.CompanyOf(t.Context(), u.ID)
	testenv.Wants(t, "no company yet", err, accounts.ErrNotFound, "has no company")
	c, err := a.createCompany(t.Context(), NewCompany{OwnerEmail: "A@example.com", Name: " Intore ", Verified: true})
	if want := (accounts.Company{ID: c.ID, OwnerID: u.ID, Name: "Intore", Verified: true}); err != nil ||
		!reflect.DeepEqual(c, want) {
		t.Fatalf("got %+v, %v, want %+v", c, err, want)
	}
	_, err = a.createCompany(t.Context(), NewCompany{OwnerEmail: "a@example.com", Name: "Second"})
	testenv.Wants(t, "a second company", err, accounts.ErrExists, "a@example.com owns a company already")
	_, err = a.createCompany(t.Context(), NewCompany{OwnerEmail: "b@example.com", Name: "x"})
	testenv.Wants(t, "an unknown owner", err, accounts.ErrNotFound, "b@example.com")
	_, err = a.createCompany(t.Context(), NewCompany{OwnerEmail: "a@example.com"})
	testenv.Wants(t, "no name", err, accounts.ErrInvalid, "company name is empty")

	if c, err = a.companies.SetCompany(t.Context(), c.ID, CompanyChange{Approved: new(true)}); err != nil || !c.Approved ||
		!c.Verified {
		t.Errorf("approving: %+v, %v", c, err)
	}
	if c, err = a.companies.SetCompany(t.Context(), c.ID,
		CompanyChange{Verified: new(false), SmartEncoding: new(true)}); err != nil ||
		!c.Approved || c.Verified || !c.SmartEncoding {
		t.Errorf("changing the others: %+v, %v", c, err)
	}
	_, err = a.companies.SetCompany(t.Context(), 99, CompanyChange{})
	testenv.Wants(t, "an unknown id", err, accounts.ErrNotFound, "no company with id 99")
	_, err = a.companies.CompanyByID(t.Context(), 99)
	testenv.Wants(t, "an unknown id", err, accounts.ErrNotFound, "no company with id 99")
	if got, err := a.companies.CompanyByID(t.Context(), c.ID); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("CompanyByID: %+v, %v", got, err)
	}
	if got, err := a.companies.CompanyOf(t.Context(), u.ID); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("CompanyOf: %+v, %v", got, err)
	}
	a.User(t, "b@example.com")
	second := a.Company(t, "b@example.com")
	if got, err := a.companies.Companies(t.Context(), c.ID, 10); err != nil || len(got) != 1 || got[0].ID != second.ID {
		t.Errorf("Companies: %+v, %v", got, err)
	}
}

// TestQuietHoursOfAll: the database refuses unreadable quiet hours. A company that has such nevertheless counts as
// having none, and the others keep theirs.
func TestQuietHoursOfAll(t *testing.T) {
	a := newWorld(t)
	a.User(t, "a@example.com")
	a.User(t, "b@example.com")
	odd, even := a.Company(t, "a@example.com"), a.Company(t, "b@example.com")
	a.Exec(t, `update companies set quiet_hours = '21:00-06:00' where id = $1`, even.ID)
	for _, text := range []string{"08:00-08:00", "24:00-06:00", "", "21:00"} {
		if _, err := a.Pool.Exec(t.Context(), `update companies set quiet_hours = $2 where id = $1`, odd.ID,
			text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	a.Exec(t, `alter table companies drop constraint companies_quiet_hours_check`)
	a.Exec(t, `update companies set quiet_hours = '08:00-08:00' where id = $1`, odd.ID)
	own, err := a.companies.QuietHours(t.Context())
	if err != nil || len(own) != 2 || own[odd.ID].String() != sms.NoQuietHours || own[even.ID].String() != "21:00-06:00" {
		t.Errorf("%v, %v", own, err)
	}
}

func TestAwaiting(t *testing.T) {
	a := newWorld(t)
	var ids []int64
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		a.User(t, email)
		ids = append(ids, a.Company(t, email).ID)
	}
	if _, err := a.companies.SetCompany(t.Context(), ids[1],
		CompanyChange{Approved: new(true), Verified: new(true)}); err != nil {
		t.Fatal(err)
	}
	list, err := a.companies.Awaiting(t.Context(), 0, 10)
	if err != nil || len(list) != 2 || list[0].Company.ID != ids[0] || list[1].OwnerEmail != "c@example.com" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err = a.companies.Awaiting(t.Context(), ids[0], 1); err != nil || len(list) != 1 ||
		list[0].Company.ID != ids[2] {
		t.Errorf("%+v, %v", list, err)
	}
}
