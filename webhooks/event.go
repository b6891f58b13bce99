package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// The two events that every endpoint gets. rule api 6
const (
	Sent   = "sms.sent"
	Failed = "sms.failed"
)

// eventNames are all events, by their number within a delivery's id.
var eventNames = [...]string{Sent, Failed, Received, LowBalance}

// Event is a message's final transition.
type Event struct {
	CompanyID   int64
	MessageID   int64  // the integer id of rule api 2.3
	Name        string // Sent or Failed
	PhoneNumber string // E.164
	At          time.Time
	Reference   string // the customer's own name for the message; "": none, and the body does not speak of it

	data string // of the body, of events that are about no message of the company
}

// timestampLayout is RFC 3339 with a numeric offset also for UTC, to the second.
const timestampLayout = "2006-01-02T15:04:05-07:00"

// idSpan is how many delivery ids belong to one message. It is larger than the
// number of events so that another event would not move the ids of old ones.
const idSpan = 8

// deliveryID is the primary key of a message's event: one row at most can exist.
func deliveryID(messageID int64, name string) (int64, error) {
	if messageID <= 0 || messageID > (1<<63-1)/idSpan {
		return 0, fmt.Errorf("message id %d is out of range", messageID)
	}
	n := slices.Index(eventNames[:], name)
	if n < 0 {
		return 0, fmt.Errorf("message %d: no such webhook event %q", messageID, name)
	}
	return messageID*idSpan + int64(n), nil
}

// messageOf and eventName undo deliveryID.
func messageOf(delivery int64) int64 { return delivery / idSpan }

func eventName(delivery int64) string {
	n := delivery % idSpan
	if n < 0 { // a test's
		n = -n
	}
	return eventNames[min(int(n), len(eventNames)-1)]
}

// webhookID is the receiver's key against duplicates: the same over all attempts
// and re-sends of a delivery. It contains no full stop, as the signed content of
// Standard Webhooks demands.
func webhookID(delivery int64) string { return string(appendWebhookID(nil, delivery)) }

func appendWebhookID(b []byte, delivery int64) []byte {
	if delivery < 0 { // a test's
		return strconv.AppendInt(append(b, "evt_test_"...), -delivery, 10)
	}
	return strconv.AppendInt(append(b, "evt_"...), delivery, 10)
}

// appendBody appends the body of rule api 6: these fields in this order, nothing else, but
// for the client_reference of a message that was given one; of the events that an endpoint
// asked for, the data that is stored with them.
// Every attempt builds the body again and must send the same octets, so the result for
// an event must never change.
func appendBody(b []byte, e *Event) []byte {
	b = append(b, `{"event":"`...)
	b = append(b, e.Name...)
	b = append(b, `","timestamp":`...)
	b = appendTime(b, e.At)
	if e.data != "" {
		b = append(b, `,"data":`...)
		b = append(b, e.data...)
		return append(b, '}')
	}
	b = append(b, `,"data":{"message_id":`...)
	b = strconv.AppendInt(b, e.MessageID, 10)
	b = append(b, `,"phone_number":`...)
	b = appendString(b, e.PhoneNumber)
	b = append(b, `,"status":"`...)
	b = append(b, e.Name...)
	if e.Name == Sent {
		b = append(b, `","sent_at":`...)
		b = appendTime(b, e.At)
		b = append(b, `,"failed_at":null`...)
	} else {
		b = append(b, `","sent_at":null,"failed_at":`...)
		b = appendTime(b, e.At)
	}
	if e.Reference != "" {
		b = append(b, `,"client_reference":`...)
		b = appendString(b, e.Reference)
	}
	return append(b, "}}"...)
}

func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, timestampLayout)
	return append(b, '"')
}

// appendString appends s as a JSON string; a plain one, as every E.164 number is,
// costs no allocation.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// Enqueue records events in the transaction that makes their messages final, for
// companies with an active endpoint. An event that is already recorded is skipped, so
// a message has exactly one row. It runs one statement for any number of events, with
// the commit at the latest (postgres.Later). Call Kick once tx is committed. rule api 6
func (w *Webhooks) Enqueue(ctx context.Context, tx pgx.Tx, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	ids, companies := make([]int64, len(events)), make([]int64, len(events))
	at, numbers, references := make([]time.Time, len(events)), make([]string, len(events)), make([]*string, len(events))
	seen := make(map[int64]bool, len(events))
	n, now := 0, time.Now()
	for i := range events {
		e := &events[i]
		id, err := deliveryID(e.MessageID, e.Name)
		if err != nil {
			return fmt.Errorf("enqueueing webhooks: %w", err)
		}
		if !seen[id] {
			seen[id] = true
			w.wanted.add(e.CompanyID, want{enqueued: now})
			ids[n], companies[n], at[n], numbers[n] = id, e.CompanyID, e.At, e.PhoneNumber
			if e.Reference != "" {
				references[n] = &e.Reference
			}
			n++
		}
	}
	// Not ON CONFLICT DO NOTHING: it writes a second WAL record for every row.
	b := &pgx.Batch{}
	b.Queue(`
		WITH new AS (
			INSERT INTO webhook_deliveries (company_id, id, at, phone_number, client_reference)
			SELECT n.company_id, n.id, n.at, n.phone_number, n.reference
			FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::text[], $5::text[]) AS n(company_id, id, at, phone_number, reference)
			JOIN webhook_endpoints e ON e.company_id = n.company_id AND e.active
			WHERE NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.company_id = n.company_id AND d.id = n.id)
			RETURNING company_id, id
		)
		INSERT INTO webhook_undelivered (company_id, id, due) SELECT company_id, id, now() FROM new`,
		companies[:n], ids[:n], at[:n], numbers[:n], references[:n])
	return postgres.Later(ctx, tx, fmt.Sprintf("enqueueing %d webhooks", n), b)
}
