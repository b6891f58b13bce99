package senders

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"intumwa/accounts"
	"intumwa/sms"
)

// TestRequestSender: a request waits, is refused with a reason, requested again and approved; the number of waiting
// requests is limited.
func TestRequestSender(t *testing.T) {
	a := newWorld(t)
	company := sms.CompanyID(a.Company(t, a.User(t, "aline@example.com").Email).ID)
	other := sms.CompanyID(a.Company(t, a.User(t, "bob@example.com").Email).ID)
	for _, try := range []struct{ name, country, purpose string }{
		{"", "", "x"}, {"TWELVELETTER", "", "x"}, {"Bé", "", "x"}, {"A B", "", "x"}, {"INTUMWATEST", "", "x"},
		{"ISOKO", "B", "x"},
		{"ISOKO", "", " \n"}, {"ISOKO", "", strings.Repeat("x", MaxPurpose+1)}, {"ISOKO", "", "a\x00b"},
		{"ISOKO", "", "a\u202eb"}, {"ISOKO", "", "\xff"},
	} {
		if _, err := a.senders.RequestSender(t.Context(), company, try.name, try.country, try.purpose); !errors.Is(
			err, accounts.ErrInvalid) {
			t.Errorf("%q: %v", try, err)
		}
	}
	if _, err := a.senders.RequestSender(t.Context(), 99, "ISOKO", "", "x"); !errors.Is(err, accounts.ErrNotFound) {
		t.Error(err)
	}
	r, err := a.senders.RequestSender(t.Context(), company, "ISOKO", "", " Order\r\n news ")
	if err != nil || r.State() != Waiting || r.Purpose != "Order news" || r.Country != "BI" ||
		r.CompanyID != int64(company) {
		t.Fatal(r, err)
	}
	if _, err := a.senders.RequestSender(t.Context(), company, "ISOKO", "", "again"); !errors.Is(err, accounts.ErrExists) {
		t.Error(err)
	}
	if _, err := a.senders.RequestSender(t.Context(), other, "ISOKO", "", "theirs"); err != nil {
		t.Error(err)
	}
	if waiting, err := a.senders.WaitingSenders(t.Context(), 0, 10); err != nil || len(waiting) != 2 {
		t.Error(waiting, err)
	}
	if _, err := a.senders.RefuseSender(t.Context(), r.ID, " "); !errors.Is(err, accounts.ErrInvalid) {
		t.Error(err)
	}
	if _, err := a.senders.RefuseSender(t.Context(), 999, "no"); !errors.Is(err, accounts.ErrNotFound) {
		t.Error(err)
	}
	if r, err = a.senders.RefuseSender(t.Context(), r.ID, "Another's name"); err != nil || r.State() != Refused ||
		r.Refusal != "Another's name" {
		t.Fatal(r, err)
	}
	if again, err := a.senders.RequestSender(t.Context(), company, "ISOKO", "", "It is ours"); err != nil ||
		again.ID != r.ID || again.State() != Waiting || again.Refusal != "" {
		t.Fatal(again, err)
	}
	if _, err := a.senders.RefuseSender(t.Context(), r.ID, "No"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.senders.SetSender(t.Context(), r.ID, false); err != nil {
		t.Fatal(err)
	}
	if r, err = a.senders.SenderByID(t.Context(), r.ID); err != nil || r.State() != Refused {
		t.Error("a refused request waits again:", r, err)
	}
	if _, err := a.senders.SetSender(t.Context(), r.ID, true); err != nil {
		t.Fatal(err)
	}
	if list, err := a.senders.SenderRequestsOf(t.Context(), company); err != nil || len(list) != 1 ||
		list[0].State() != Approved || list[0].Refusal != "" {
		t.Error(list, err)
	}
	if _, err := a.senders.RequestSender(t.Context(), company, "ISOKO", "", "x"); !errors.Is(err, accounts.ErrExists) {
		t.Error(err)
	}
	if r, err = a.senders.RefuseSender(t.Context(), r.ID, "Complaints"); err != nil || r.Approved {
		t.Error("an approval is not withdrawn:", r, err)
	}
}

// TestRequestSenderBounds: requests at the same time do not exceed the limits of waiting and of all senders.
func TestRequestSenderBounds(t *testing.T) {
	a := newWorld(t)
	company := sms.CompanyID(a.Company(t, a.User(t, "aline@example.com").Email).ID)
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			if _, err := a.senders.RequestSender(t.Context(), company, "S"+string(rune('A'+i)), "", "x"); err != nil &&
				!errors.Is(err, accounts.ErrTooMany) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	waiting, err := a.senders.WaitingSenders(t.Context(), 0, 100)
	if err != nil || len(waiting) != MaxWaiting {
		t.Fatal(len(waiting), err)
	}
	a.Exec(
		t, `insert into senders (company_id, name, refused_at) select $1, 'R' || i, now() from generate_series(1, $2) i`,
		company, MaxSenders-MaxWaiting)
	if _, err := a.senders.RefuseSender(t.Context(), waiting[0].ID, "no"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.senders.RequestSender(t.Context(), company, "NEW", "", "x"); !errors.Is(err, accounts.ErrTooMany) {
		t.Error(err)
	}
	if _, err := a.senders.RequestSender(t.Context(), company, "R1", "", "x"); err != nil {
		t.Error("a name that was refused, at the bound:", err)
	}
}
