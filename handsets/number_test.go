package handsets_test

import (
	"testing"
	"time"

	"intumwa/handsets"
)

// TestNumber: what is kept of one number is found in whatever form it was written, and
// deleted; others', and what its owner asked for, stay.
func TestNumber(t *testing.T) {
	d := newTestStore(t)
	d.keep(handsets.Inbound{Source: "25761000001", Destination: "8080"}, handsets.Inbound{Source: "61000001", Destination: "8080"},
		handsets.Inbound{Source: "25761000002", Destination: "+25761000001"}, handsets.Inbound{Source: "25761000002", Destination: "8080"},
		handsets.Inbound{Source: "0025761000001", Destination: "8080"}, handsets.Inbound{Source: "32461000001", Destination: "2250161000001"})
	text := "Yego"
	id, err := d.Insert(t.Context(), handsets.Message{CompanyID: 7, At: time.Now(), From: "+25761000001", To: "8080", Body: &text, Parts: 1})
	if err == nil {
		_, err = d.Insert(t.Context(), handsets.Message{CompanyID: 7, At: time.Now(), From: "+25761000002", To: "8080", Body: &text, Parts: 1})
	}
	if err == nil {
		_, err = d.OptOut(t.Context(), 7, []handsets.OptOut{{Number: "+25761000001", Source: handsets.ByHandset}, {Number: "+25761000002", Source: handsets.ByHandset}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if found, err := d.InboundOf(t.Context(), "+25761000001"); err != nil || len(found) != 4 {
		t.Errorf("%+v, %v", found, err)
	}
	d.exec(`UPDATE inbound SET outcome = CASE source WHEN '61000001' THEN 'waiting' ELSE 'unrouted' END WHERE source <> '0025761000001'`)
	deleted, pending, messages, err := d.EraseInbound(t.Context(), "+25761000001")
	if err != nil || deleted != 2 || pending != 2 || len(messages) != 1 || messages[0] != (handsets.Ref{CompanyID: 7, ID: id}) {
		t.Errorf("%d, %d, %v, %v", deleted, pending, messages, err)
	}
	d.exec(`UPDATE inbound SET outcome = 'incomplete'`)
	deleted, pending, messages, err = d.EraseInbound(t.Context(), "+25761000001")
	if err != nil || deleted != 2 || pending != 0 || len(messages) != 0 {
		t.Errorf("when they were looked at: %d, %d, %v, %v", deleted, pending, messages, err)
	}
	if left, err := d.Inbounds(t.Context(), 0, 10); err != nil || len(left) != 2 {
		t.Errorf("%+v, %v", left, err)
	}
	if left, err := d.OptOutsOf(t.Context(), "+25761000001"); err != nil || len(left[7]) != 1 {
		t.Errorf("%+v, %v", left, err)
	}
}
