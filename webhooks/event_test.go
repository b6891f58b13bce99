package webhooks

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func bodyOf(t *testing.T, e Event) []byte {
	t.Helper()
	stored, err := e.stored()
	if err != nil {
		t.Fatal(err)
	}
	return appendBody(nil, &stored)
}

func TestBodyIsExactlyTheContracts(t *testing.T) {
	bujumbura := time.FixedZone("CAT", 2*60*60)
	at := time.Date(2026, 3, 1, 10, 0, 0, 987654321, bujumbura)
	sent := Event{CompanyID: 7, MessageID: 42, Name: Sent, PhoneNumber: "+25761234567", At: at}
	failed := Event{CompanyID: 7, MessageID: 43, Name: Failed, PhoneNumber: "+25761234568", At: at}
	for _, test := range []struct {
		event Event
		want  string
	}{
		{sent,
			`{"event":"sms.sent","timestamp":"2026-03-01T08:00:00+00:00","data":{"message_id":42,` +
				`"phone_number":"+25761234567","status":"sms.sent","sent_at":"2026-03-01T08:00:00+00:00","failed_at":null}}`},
		{failed,
			`{"event":"sms.failed","timestamp":"2026-03-01T08:00:00+00:00","data":{"message_id":43,` +
				`"phone_number":"+25761234568","status":"sms.failed","sent_at":null,"failed_at":"2026-03-01T08:00:00+00:00"}}`},
	} {
		if got := string(bodyOf(t, test.event)); got != test.want {
			t.Errorf("body\n got %s\nwant %s", got, test.want)
		}
	}
}

func TestBodyStaysJSONWhateverTheNumber(t *testing.T) {
	for _, number := range []string{`"`, `\`, "\x00\n", "é\xff", "+257 61", ""} {
		body := bodyOf(t, Event{MessageID: 1, Name: Sent, PhoneNumber: number})
		if !json.Valid(body) {
			t.Errorf("number %q makes %s", number, body)
		}
	}
}

func TestDeliveryIDs(t *testing.T) {
	seen := map[int64]bool{}
	for _, message := range []int64{1, 2, 3, 1 << 40, (1<<63 - 1) / idSpan} {
		for _, name := range eventNames {
			id, err := deliveryID(message, name)
			if err != nil || seen[id] || id <= 0 {
				t.Fatalf("deliveryID(%d, %s) = %d, %v", message, name, id, err)
			}
			seen[id] = true
			if messageOf(id) != message || eventName(id) != name {
				t.Errorf("delivery %d is of %d %s, not %d %s", id, messageOf(id), eventName(id), message, name)
			}
		}
	}
	for _, message := range []int64{0, -1, (1<<63-1)/idSpan + 1} {
		if _, err := deliveryID(message, Sent); err == nil {
			t.Errorf("message id %d was taken", message)
		}
	}
	if _, err := deliveryID(1, "sms.read"); err == nil {
		t.Error("an unknown event was taken")
	}
}

// A message's cost_center follows the reference.
// rule choices 8.3
func TestBodyWithCostCenter(t *testing.T) {
	e := Event{MessageID: 42, Name: Sent, PhoneNumber: "+25761234567", At: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}
	plain := strings.TrimSuffix(string(bodyOf(t, e)), "}}")
	for _, c := range []struct{ reference, center, end string }{
		{"", "", `}}`}, {"", `I"T é`, `,"cost_center":"I\"T é"}}`},
		{"7", "IT", `,"client_reference":"7","cost_center":"IT"}}`},
	} {
		e.Reference, e.CostCenter = c.reference, c.center
		if got, want := string(bodyOf(t, e)), plain+c.end; got != want {
			t.Errorf("body\n got %s\nwant %s", got, want)
		}
	}
}

// A message's client_reference is after the fields of the contract, the same in every attempt.
// rule choices 8.3
func TestBodyWithReference(t *testing.T) {
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for reference, text := range map[string]string{"order 42": `"order 42"`, `a"\é<&`: `"a\"\\é<&"`} {
		sent := Event{MessageID: 42, Name: Sent, PhoneNumber: "+25761234567", At: at, Reference: reference}
		want :=
			`{"event":"sms.sent","timestamp":"2026-03-01T08:00:00+00:00","data":{"message_id":42,` +
				`"phone_number":"+25761234567","status":"sms.sent","sent_at":"2026-03-01T08:00:00+00:00","failed_at":null,` +
				`"client_reference":` + text + `}}`
		if got := string(bodyOf(t, sent)); got != want {
			t.Errorf("body\n got %s\nwant %s", got, want)
		}
		failed := sent
		failed.Name = Failed
		var body struct {
			Data struct {
				ClientReference string `json:"client_reference"`
			}
		}
		if err := json.Unmarshal(bodyOf(t, failed), &body); err != nil || body.Data.ClientReference != reference {
			t.Errorf("%q comes as %q, %v", reference, body.Data.ClientReference, err)
		}
	}
}
