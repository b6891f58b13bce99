package senders

import (
	"reflect"
	"testing"

	"intumwa/accounts"
	"intumwa/internal/testenv"
)

func TestSender(t *testing.T) {
	a := newWorld(t)
	a.User(t, "a@example.com")
	company := a.Company(t, "a@example.com")
	s := a.mustSender(t, company.ID, "Intore")
	a.mustSender(t, company.ID, "INTORE") // case counts
	_, err := a.senders.CreateSender(t.Context(), company.ID, "Intore", "BI", false)
	testenv.Wants(t, "a duplicate", err, accounts.ErrExists, "has a sender Intore already")
	_, err = a.senders.CreateSender(t.Context(), 99, "Other", "", false)
	testenv.Wants(t, "an unknown company", err, accounts.ErrNotFound, "no company with id 99")
	for _, name := range []string{"", "twelve chars", "TwelveLetter", "a-b", "é", "+25779", " a"} {
		_, err := a.senders.CreateSender(t.Context(), company.ID, name, "", false)
		testenv.Wants(t, name, err, accounts.ErrInvalid, "not 1-11 alphanumeric")
	}
	_, err = a.senders.CreateSender(t.Context(), company.ID, "INTUMWATEST", "", false)
	testenv.Wants(t, "the test sender", err, accounts.ErrInvalid, "test sender")
	for _, country := range []string{"B", "BDI", "1A"} {
		_, err := a.senders.CreateSender(t.Context(), company.ID, "Other", country, false)
		testenv.Wants(t, country, err, accounts.ErrInvalid, "country code")
	}
	if r, err := a.senders.SetSender(t.Context(), s.ID, true); err != nil ||
		!reflect.DeepEqual(r.Sender, accounts.Sender{ID: s.ID, Name: "Intore", Country: "BI", Approved: true}) {
		t.Errorf("SetSender: %+v, %v", r, err)
	}
	_, err = a.senders.SetSender(t.Context(), 99, true)
	testenv.Wants(t, "an unknown id", err, accounts.ErrNotFound, "no sender with id 99")
	if all, err := a.senders.SendersOf(t.Context(), company.ID); err != nil || len(all) != 2 {
		t.Errorf("SendersOf: %+v, %v", all, err)
	}
}
