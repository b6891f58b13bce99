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
	"github.com/oklog/ulid/v2"

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

// checkEvents refuses events that cannot be requested. It returns the others sorted, without
// duplicates.
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

// Event is the content of a request to a company's endpoint.
type Event struct {
	CompanyID int64
	// MessageID is the integer id of the final message (rule api 2.3), or a number of the same
	// sequence. Together with Name it identifies the event.
	MessageID   int64
	Name        string
	PhoneNumber string // E.164; "": it concerns no number
	At          time.Time
	Reference   string // the customer's client_reference; "": none, and the body omits the field
	Data        any    // data of the body, for a requested event: ReceivedData or LowBalanceData
}

// ReceivedData is the data of Received.
type ReceivedData struct {
	InboundID  int64   `json:"inbound_id"`
	From       string  `json:"from"`
	To         string  `json:"to"`
	Message    *string `json:"message"` // nil: no text in a supported coding
	ReceivedAt Time    `json:"received_at"`
}

// LowBalanceData is the data of LowBalance.
type LowBalanceData struct {
	CompanyID int64 `json:"company_id"`
	Credits   int64 `json:"credits"`
	Threshold int64 `json:"threshold"`
}

// Time marshals as RFC 3339 to the second, with a numeric offset even for UTC.
type Time struct{ time.Time }

const timestampLayout = "2006-01-02T15:04:05-07:00"

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) { return t.append(nil), nil }

func (t Time) append(b []byte) []byte { return t.UTC().AppendFormat(b, `"`+timestampLayout+`"`) }

// appendBody appends the body of rule api 6: exactly these fields for a message, plus
// client_reference if the message has one. Every attempt rebuilds the body and must send the
// same bytes, so the result for an event must never change.
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

func appendText(b []byte, text string) []byte {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return append(b, jsonOf(text)...)
	}
	return append(append(append(b, '"'), text...), '"')
}

// jsonOf returns the JSON of texts and numbers, without HTML escapes.
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

// idSpan is how many delivery ids one message has. It exceeds the number of events, so that a
// new event does not move existing ids.
const idSpan = 8

// deliveryID is the primary key of a message's event, so at most one row can exist.
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

// messageOf and eventName reverse deliveryID.
func messageOf(delivery int64) int64 { return delivery / idSpan }

func eventName(delivery int64) string {
	n := delivery % idSpan
	if n < 0 { // a test event
		n = -n
	}
	return eventNames[min(int(n), len(eventNames)-1)]
}

// webhookID identifies duplicates for the receiver: it is the same in all attempts and re-sends
// of a delivery. It contains no full stop, because Standard Webhooks separates the signed parts
// with it.
func webhookID(delivery int64) string { return string(appendWebhookID(nil, delivery)) }

func appendWebhookID(b []byte, delivery int64) []byte {
	if delivery < 0 { // a test event
		return strconv.AppendInt(append(b, "evt_test_"...), -delivery, 10)
	}
	return strconv.AppendInt(append(b, "evt_"...), delivery, 10)
}

// Enqueue records events in the transaction that makes their messages final. It does so for
// companies with an active endpoint, and for events of Askable only if the endpoint requested
// them. The caller records each event once: in the transaction of the only transition that causes
// it. One statement covers any number of events and runs no later than the commit (postgres.Later).
// After the commit of a [postgres.Tx] it wakes Run. rule api 6
//
// If this process's Run has room, Enqueue records the event in webhook_first_calls, and Run calls
// it after the commit. That COMMIT waits for the synchronous standby, if there is one, like a
// claim's COMMIT.
func (w *Webhooks) Enqueue(ctx context.Context, tx pgx.Tx, events []Event) error {
	n := len(events)
	if n == 0 {
		return nil
	}
	jobs, ids, companies, at := make([]job, n), make([]int64, n), make([]int64, n), make([]time.Time, n)
	numbers, references, data, asked := make([]string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	for i := range events {
		e := &events[i]
		j, err := e.job()
		if err != nil {
			return fmt.Errorf("enqueueing webhooks: %w", err)
		}
		if e.Data != nil {
			asked[i] = &e.Name
		}
		jobs[i], ids[i], companies[i], at[i], numbers[i], references[i], data[i] = j, j.id, j.company, j.at, j.number, orNull(j.reference), orNull(j.data)
	}
	calls := &firstCalls{id: ulid.Make(), ends: postgres.Now().Add(w.claimLasts())}
	d, found, waits := w.running.Load(), []*claimed(nil), false
	handed := make([]bool, n)
	if postgres.AfterCommit(tx, func() {
		if d != nil {
			d.hand(calls, found)
		}
		if waits {
			w.Kick()
		}
	}) && d != nil {
		d.takes(companies, handed)
	}
	beginBy := time.Now().Add(beginWithin)
	// ON CONFLICT DO NOTHING would write a second WAL record for every row.
	b := &pgx.Batch{}
	b.Queue(`
		WITH new AS MATERIALIZED (
			SELECT n.*
			FROM (SELECT unnest($1::bigint[]) AS company_id, unnest($2::bigint[]) AS id, unnest($3::timestamptz[]) AS at, unnest($4::text[]) AS phone_number,
				unnest($5::text[]) AS client_reference, unnest($6::text[]) AS data, unnest($7::text[]) AS asked, unnest($8::boolean[]) AS handed, generate_subscripts($2::bigint[], 1) AS place) n
			JOIN webhook_endpoints e ON e.company_id = n.company_id AND e.active AND (n.asked IS NULL OR n.asked = ANY(e.events))
		), waiting AS (
			INSERT INTO webhook_undelivered (company_id, id, at, due, phone_number, client_reference, data)
			SELECT company_id, id, at, now(), phone_number, client_reference, data FROM new WHERE NOT handed
		), calls AS (
			INSERT INTO webhook_first_calls (id, ends, company_ids, ids, at, phone_numbers, client_references, data)
			SELECT $9::uuid, $10::timestamptz, array_agg(company_id), array_agg(id), array_agg(at), array_agg(phone_number), array_agg(client_reference), array_agg(data)
			FROM new WHERE handed HAVING count(*) > 0
		)
		SELECT `+storedColumns+`, n.places
		FROM (SELECT company_id, array_agg(place) AS places FROM new GROUP BY company_id) n
		JOIN webhook_endpoints e ON e.company_id = n.company_id`,
		companies, ids, at, numbers, references, data, asked, handed, calls.id, calls.ends).Query(func(rows pgx.Rows) error {
		var s storedEndpoint
		var places []int32
		_, err := pgx.ForEachRow(rows, append(s.fields(), &places), func() error {
			c := &claimed{endpoint: s, jobs: make([]job, 0, len(places))}
			for _, place := range places {
				if !handed[place-1] {
					waits = true
					continue
				}
				j := jobs[place-1]
				j.beginBy, j.calls, j.place = beginBy, calls, len(calls.results)
				c.jobs, calls.results = append(c.jobs, j), append(calls.results, result{job: j})
			}
			if len(c.jobs) > 0 {
				found = append(found, c)
			}
			return nil
		})
		return err
	})
	return postgres.Later(ctx, tx, fmt.Sprintf("enqueueing %d webhooks", n), b)
}
