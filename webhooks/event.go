package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// The two events that every endpoint gets. rule api 6
const (
	Sent   = "sms.sent"
	Failed = "sms.failed"
)

// Events that an endpoint gets only if it requested them (Endpoint.Events).
const (
	Received   = "sms.received" // a message from a handset
	LowBalance = "balance.low"  // the balance has fallen below a threshold
)

// Askable lists the events that an endpoint may request.
func Askable() []string { return []string{Received, LowBalance} }

// eventNames are all events, by their number within a delivery's id.
var eventNames = [...]string{Sent, Failed, Received, LowBalance}

// Reasons of refusals of the events that an endpoint requests.
const (
	BadEvent    = "webhook_event"
	AlwaysEvent = "webhook_event_always"
)

// checkEvents refuses events that cannot be requested, and returns them sorted, each once.
func checkEvents(asked []string) ([]string, error) {
	for _, name := range asked {
		switch {
		case name == Sent || name == Failed:
			return nil, sms.Refusal{Reason: AlwaysEvent, Text: "Every endpoint gets " + Sent + " and " + Failed + "; ask for the others only."}
		case !slices.Contains(Askable(), name):
			return nil, sms.Refusal{Reason: BadEvent, Text: "There is no such event."}
		}
	}
	return append([]string{}, slices.Compact(slices.Sorted(slices.Values(asked)))...), nil
}

// Event is what a company's endpoint gets a request about.
type Event struct {
	CompanyID int64
	// MessageID is the integer id of the message that became final (rule api 2.3), or a number
	// of the same sequence. With the name it is the event's identity.
	MessageID   int64
	Name        string
	PhoneNumber string // E.164; empty where it concerns nobody
	At          time.Time
	Reference   string // the customer's own name for the message; "": none, and the body has no such field
	Data        any    // of the body, of an event that is requested: ReceivedData or LowBalanceData
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

// Time is written in JSON as RFC 3339 with a numeric offset also for UTC, to the second.
type Time struct{ time.Time }

const timestampLayout = "2006-01-02T15:04:05-07:00"

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) { return t.append(nil), nil }

func (t Time) append(b []byte) []byte { return t.UTC().AppendFormat(b, `"`+timestampLayout+`"`) }

// appendBody appends the body of rule api 6: with exactly these fields for a message, and the
// client_reference of a message that has one. Every attempt builds the body again and must send
// the same bytes, so the result for an event must never change.
func appendBody(b []byte, j *job) []byte {
	event := eventName(j.id)
	b = append(append(append(b, `{"event":"`...), event...), `","timestamp":`...)
	from := len(b)
	b = Time{j.at}.append(b)
	at := b[from:]
	b = append(b, `,"data":`...)
	if j.data != "" {
		return append(append(b, j.data...), '}')
	}
	b = strconv.AppendInt(append(b, `{"message_id":`...), messageOf(max(0, j.id)), 10)
	b = appendText(append(b, `,"phone_number":`...), j.number)
	b = append(append(append(b, `,"status":"`...), event...), `","sent_at":`...)
	if event == Sent {
		b = append(append(b, at...), `,"failed_at":null`...)
	} else {
		b = append(append(b, `null,"failed_at":`...), at...)
	}
	if j.reference != "" {
		b = appendText(append(b, `,"client_reference":`...), j.reference)
	}
	return append(b, "}}"...)
}

// appendText appends a text in JSON.
func appendText(b []byte, text string) []byte {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return append(b, jsonOf(text)...)
	}
	return append(append(append(b, '"'), text...), '"')
}

// jsonOf returns the JSON of texts and numbers, without escapes for HTML.
func jsonOf(value any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // texts and numbers always marshal
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// job returns the delivery of an event.
func (e *Event) job() (j job, err error) {
	j = job{company: e.CompanyID, at: e.At, number: e.PhoneNumber, reference: e.Reference}
	if e.Data != nil {
		j.data = string(jsonOf(e.Data))
	}
	j.id, err = deliveryID(e.MessageID, e.Name)
	return j, err
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

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
func webhookID(delivery int64) string {
	if delivery < 0 { // a test's
		return "evt_test_" + strconv.FormatInt(-delivery, 10)
	}
	return "evt_" + strconv.FormatInt(delivery, 10)
}

// Enqueue records events in the transaction that makes their messages final, for companies with
// an active endpoint, and those of Askable for endpoints that requested them. An event that is
// already recorded is skipped, so a message has exactly one row. It runs one statement for any
// number of events, with the commit at the latest (postgres.Later). After the commit of a
// [postgres.Tx] it wakes Run. rule api 6
//
// What Run of this process has room for is recorded as claimed, and called after the commit. That
// COMMIT waits for the synchronous standby, if there is one, as the COMMIT of a claim does.
func (w *Webhooks) Enqueue(ctx context.Context, tx pgx.Tx, events []Event) error {
	ids, companies, at := []int64{}, []int64{}, []time.Time{}
	numbers, references, data, asked := []string{}, []*string{}, []*string{}, []*string{}
	of := map[int64]job{}
	for i := range events {
		e := &events[i]
		j, err := e.job()
		if err != nil {
			return fmt.Errorf("enqueueing webhooks: %w", err)
		}
		if _, twice := of[j.id]; twice {
			continue
		}
		of[j.id] = j
		var name *string
		if e.Data != nil {
			name = &e.Name
		}
		ids, companies, at, numbers = append(ids, j.id), append(companies, j.company), append(at, j.at), append(numbers, j.number)
		references, data, asked = append(references, orNull(j.reference)), append(data, orNull(j.data)), append(asked, name)
	}
	if len(ids) == 0 {
		return nil
	}
	d, found, waits := w.running.Load(), []*claimed(nil), false
	handed := []int64{}
	if postgres.AfterCommit(tx, func() {
		if d != nil {
			d.hand(found)
		}
		if waits {
			w.Kick()
		}
	}) && d != nil {
		handed = d.takes(companies, ids)
	}
	beginBy, claim := time.Now().Add(beginWithin), postgres.Now().Add(w.claimLasts()).Truncate(time.Microsecond)
	// Not ON CONFLICT DO NOTHING: it writes a second WAL record for every row.
	b := &pgx.Batch{}
	b.Queue(`
		WITH new AS (
			INSERT INTO webhook_undelivered (company_id, id, at, due, claimed_until, phone_number, client_reference, data)
			SELECT n.company_id, n.id, n.at, CASE WHEN NOT n.handed THEN now() END, CASE WHEN n.handed THEN $9::timestamptz END,
				n.phone_number, n.reference, n.data
			FROM (SELECT *, id = ANY($8::bigint[]) AS handed FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::text[])
				AS n(company_id, id, at, phone_number, reference, data, asked)) n
			JOIN webhook_endpoints e ON e.company_id = n.company_id AND e.active AND (n.asked IS NULL OR n.asked = ANY(e.events))
			WHERE NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.company_id = n.company_id AND d.id = n.id)
			RETURNING company_id, id, claimed_until IS NOT NULL AS handed
		)
		SELECT `+storedColumns+`, array_agg(new.id), array_agg(new.handed)
		FROM new JOIN webhook_endpoints e ON e.company_id = new.company_id GROUP BY e.company_id`,
		companies, ids, at, numbers, references, data, asked, handed, claim).Query(func(rows pgx.Rows) error {
		var s storedEndpoint
		var ids []int64
		var handed []bool
		_, err := pgx.ForEachRow(rows, append(s.fields(), &ids, &handed), func() error {
			c := &claimed{endpoint: s}
			for i, id := range ids {
				if !handed[i] {
					waits = true
					continue
				}
				j := of[id]
				j.beginBy, j.claim = beginBy, claim
				c.jobs = append(c.jobs, j)
			}
			if len(c.jobs) > 0 {
				found = append(found, c)
			}
			return nil
		})
		return err
	})
	return postgres.Later(ctx, tx, fmt.Sprintf("enqueueing %d webhooks", len(ids)), b)
}
