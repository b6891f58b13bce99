package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Events that an endpoint gets only if it asked for them (Endpoint.Events).
const (
	Received   = "sms.received" // a message from a handset
	LowBalance = "balance.low"  // the balance has fallen below a threshold
)

// Askable lists them.
func Askable() []string { return []string{Received, LowBalance} }

// Reasons of refusals of the events that an endpoint asks for.
const (
	BadEvent    = "webhook_event"
	AlwaysEvent = "webhook_event_always"
)

// checkEvents refuses events that cannot be asked for, and returns them in one order,
// each once.
func checkEvents(asked []string) ([]string, error) {
	for _, name := range asked {
		switch {
		case name == Sent || name == Failed:
			return nil, sms.Refusal{Reason: AlwaysEvent, Text: "Every endpoint gets " + Sent + " and " + Failed + "; ask for the others only."}
		case !slices.Contains(Askable(), name):
			return nil, sms.Refusal{Reason: BadEvent, Text: "There is no such event."}
		}
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(asked)))
	if sorted == nil {
		sorted = []string{}
	}
	return sorted, nil
}

// Asked is an event that an endpoint gets only if it asked for it.
type Asked struct {
	CompanyID int64
	Number    int64 // drawn from the sequence of messages; with the name it is the event's identity
	Name      string
	At        time.Time
	// PhoneNumber is whom it is about; empty where it is nobody.
	PhoneNumber string
	Data        any // of the body: what encoding/json writes of it, once and for all
}

// ReceivedData is the data of Received.
type ReceivedData struct {
	InboundID  int64   `json:"inbound_id"`
	From       string  `json:"from"`
	To         string  `json:"to"`
	Message    *string `json:"message"` // nil: no text in a coding that is read
	ReceivedAt Time    `json:"received_at"`
}

// LowBalanceData is the data of LowBalance.
type LowBalanceData struct {
	CompanyID int64 `json:"company_id"`
	Credits   int64 `json:"credits"`
	Threshold int64 `json:"threshold"`
}

// Time is written as the timestamps of webhooks are.
type Time struct{ time.Time }

// MarshalJSON writes RFC 3339 with a numeric offset, to the second.
func (t Time) MarshalJSON() ([]byte, error) { return appendTime(nil, t.Time), nil }

// EnqueueAsked records events, in the transaction of what they tell of, for companies
// with an active endpoint that asked for them. An event that is already recorded is
// skipped. Call Kick once tx is committed.
func (w *Webhooks) EnqueueAsked(ctx context.Context, tx pgx.Tx, events []Asked) error {
	b := &pgx.Batch{}
	for i := range events {
		e := &events[i]
		id, err := deliveryID(e.Number, e.Name)
		if err != nil {
			return fmt.Errorf("enqueueing webhooks: %w", err)
		}
		data, err := dataOf(e.Data)
		if err != nil {
			return fmt.Errorf("enqueueing webhooks: %w", err)
		}
		b.Queue(`
			WITH new AS (
				INSERT INTO webhook_deliveries (company_id, id, at, phone_number, data)
				SELECT e.company_id, $2::bigint, $3::timestamptz, $4::text, $5::text FROM webhook_endpoints e
				WHERE e.company_id = $1 AND e.active AND $6::text = ANY(e.events)
					AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.company_id = $1 AND d.id = $2)
				RETURNING company_id, id
			)
			INSERT INTO webhook_undelivered (company_id, id, due) SELECT company_id, id, now() FROM new`,
			e.CompanyID, id, e.At, e.PhoneNumber, data, e.Name)
		w.wanted.add(e.CompanyID, want{enqueued: time.Now()})
	}
	if b.Len() == 0 {
		return nil
	}
	return postgres.Later(ctx, tx, fmt.Sprintf("enqueueing %d webhooks", len(events)), b)
}

// dataOf returns the JSON of an event's data, without escapes for HTML.
func dataOf(data any) (string, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), nil
}

// testData is the data of a test event; "" of those that have none stored.
func testData(event string, at time.Time) string {
	text := "STOP"
	var data any
	switch event {
	case Received:
		data = ReceivedData{From: "+25761000000", To: "8080", Message: &text, ReceivedAt: Time{at}}
	case LowBalance:
		data = LowBalanceData{Threshold: 100}
	default:
		return ""
	}
	encoded, _ := dataOf(data) // texts and numbers always marshal
	return encoded
}
