package handsets_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/inbound/handsets"
)

// TestNumber: a number's data is found in every form and deleted; other numbers' data, and its opt-outs, stay.
func TestNumber(t *testing.T) {
	d := newTestStore(t)
	d.keep(handsets.Inbound{Source: "25761000001", Destination: "8080"},
		handsets.Inbound{Source: "61000001", Destination: "8080"},
		handsets.Inbound{Source: "25761000002", Destination: "+25761000001"},
		handsets.Inbound{Source: "25761000002", Destination: "8080"},
		handsets.Inbound{Source: "0025761000001", Destination: "8080"},
		handsets.Inbound{Source: "32461000001", Destination: "2250161000001"})
	_, forms := handsets.Named("+25761000001")
	text := "Yego"
	id, err := d.Insert(t.Context(), handsets.Message{CompanyID: 7, At: time.Now(), From: "+25761000001", To: "8080",
		Body: &text, Parts: 1})
	if err == nil {
		_, err = d.Insert(t.Context(), handsets.Message{CompanyID: 7, At: time.Now(), From: "+25761000002", To: "8080",
			Body: &text, Parts: 1})
	}
	if err == nil {
		_, err = d.OptOut(t.Context(), 7, []handsets.OptOut{{Number: "+25761000001", Source: handsets.ByHandset},
			{Number: "+25761000002", Source: handsets.ByHandset}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if found, err := d.InboundOf(t.Context(), forms); err != nil || len(found) != 4 {
		t.Errorf("%+v, %v", found, err)
	}
	d.exec(`UPDATE inbound SET outcome = CASE source WHEN '61000001' THEN 'waiting' ELSE 'unrouted' END
		WHERE source <> '0025761000001'`)
	d.exec(`UPDATE inbound SET outcome = 'routed', message_id = $1 WHERE source = '25761000001'`, id)
	erase := func(wantDeleted, wantPending int64, undelivered ...int64) {
		t.Helper()
		var found []handsets.Ref
		d.tx(func(ctx context.Context, tx pgx.Tx) error {
			deleted, pending, err := d.In(tx).EraseInbound(ctx, forms, func(of []handsets.Ref) ([]int64, error) {
				found = of
				return undelivered, nil
			})
			if deleted != wantDeleted || pending != wantPending {
				t.Errorf("%d are deleted and %d are pending, want %d and %d", deleted, pending, wantDeleted, wantPending)
			}
			return err
		})
		if _, err := d.Message(t.Context(), 7, id); (err == nil) != slices.Contains(undelivered, id) {
			t.Errorf("the company's message: %v", err)
		}
		if len(found) > 1 || len(found) == 1 && found[0] != (handsets.Ref{CompanyID: 7, ID: id}) {
			t.Errorf("messages %v", found)
		}
	}
	erase(1, 3, id) // its event is undelivered, one waits, and one is not routed
	erase(1, 2)
	d.exec(`UPDATE inbound SET outcome = 'incomplete'`)
	erase(2, 0)
	if left, err := d.Inbounds(t.Context(), 0, 10); err != nil || len(left) != 2 {
		t.Errorf("%+v, %v", left, err)
	}
	if left, err := d.OptOutsOf(t.Context(), "+25761000001"); err != nil || len(left[7]) != 1 {
		t.Errorf("%+v, %v", left, err)
	}
}

// TestNamed: each form of a number finds all forms that carriers write.
func TestNamed(t *testing.T) {
	for text, want := range map[string]struct {
		number string
		forms  []string
	}{
		"+257 79 00 00 00":   {"+25779000000", []string{"+25779000000", "25779000000", "0025779000000", "79000000"}},
		"79000000":           {"+25779000000", []string{"+25779000000", "25779000000", "0025779000000", "79000000"}},
		"00 250 788 123 456": {"", []string{"+250788123456", "250788123456", "00250788123456"}},
		"8080":               {"", []string{"+8080", "8080", "008080"}},
		"+79000000":          {"", []string{"+79000000"}},
		"MTN Promo":          {"", []string{"MTN Promo"}},
		"":                   {"", []string{""}},
	} {
		number, forms := handsets.Named(text)
		for _, form := range append(want.forms, text) {
			if string(number) != want.number || !slices.Contains(forms, form) || len(forms) > len(want.forms)+1 {
				t.Errorf("%q is the number %q in the forms %q, want %v", text, number, forms, want)
			}
		}
	}
}
