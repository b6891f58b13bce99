package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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

	BatchFinished = "batch.finished" // all messages of a batch are final

	// a verification was approved or cancelled, or its time or its checks are over
	VerificationFinished = "verification.finished"
)

// Askable lists the events that an endpoint may request.
func Askable() []string { return []string{Received, LowBalance, BatchFinished, VerificationFinished} }

// Pullable lists the events that a company fetches only if it requested them (SetPulled). It fetches all others.
func Pullable() []string { return []string{BatchFinished, VerificationFinished} }

// eventNames are all events, by their number within a delivery's id.
var eventNames = [...]string{Sent, Failed, Received, LowBalance, dlrSubmitted, dlrFinal, BatchFinished,
	VerificationFinished}

// firstCallback is the number of the first of a callback's two events.
const firstCallback = 4

// Reasons of refusals of the events that an endpoint requests.
const (
	BadEvent    = "webhook_event"
	AlwaysEvent = "webhook_event_always"
)

// checkEvents refuses events that are not among the known ones. It returns the others sorted, without duplicates.
func checkEvents(asked, known []string) ([]string, error) {
	for _, name := range asked {
		switch {
		case name == Sent || name == Failed:
			return nil, sms.Refusal{Reason: AlwaysEvent, Text: "Every endpoint gets " + Sent + " and " + Failed +
				"; ask for the others only."}
		case !slices.Contains(known, name):
			return nil, sms.Refusal{Reason: BadEvent, Text: "There is no such event."}
		}
	}
	return append([]string{}, slices.Compact(slices.Sorted(slices.Values(asked)))...), nil
}

// Event is the content of a request to a company's endpoint.
type Event struct {
	CompanyID int64
	// MessageID is the integer id of the final message (rule api 2.3), or a number of the same sequence. Together with
	// Name it identifies the event.
	MessageID   int64
	Name        string
	PhoneNumber string // E.164; "": it concerns no number
	At          time.Time
	Reference   string // the customer's client_reference; "": none, and the body omits the field
	CostCenter  string // the customer's cost_center; likewise
	// data of the body, for a requested event: ReceivedData, LowBalanceData, BatchFinishedData or VerificationFinishedData
	Data        any
	Unsubmitted bool // of Failed: no carrier accepted any of it
	Callback    bool // of Sent and Failed: the sender may have asked for reports (Expect)
}

// storedEvent is an event as its row has it. None of its columns ever changes.
type storedEvent struct {
	company  int64
	id       int64 // of its delivery
	at       time.Time
	number   string
	data     string // of the body, for events about no message of the company
	labels   string // further members of the body's data, each with its comma: the customer's own names of the message
	callback string // the report and the URL of a callback; "": the endpoint gets the event
}

func (e *Event) stored() (s storedEvent, err error) {
	s = storedEvent{company: e.CompanyID, at: e.At, number: e.PhoneNumber, labels: e.labels()}
	if e.Data != nil {
		s.data = string(jsonOf(e.Data))
	}
	s.id, err = deliveryID(e.MessageID, e.Name)
	return s, err
}

func (e *Event) labels() string {
	if e.Reference == "" && e.CostCenter == "" {
		return ""
	}
	var b []byte
	if e.Reference != "" {
		b = appendText(append(b, `,"client_reference":`...), e.Reference)
	}
	if e.CostCenter != "" {
		b = appendText(append(b, `,"cost_center":`...), e.CostCenter)
	}
	return string(b)
}

// ReceivedData is the data of Received.
type ReceivedData struct {
	InboundID  int64   `json:"inbound_id"`
	From       string  `json:"from"`
	To         string  `json:"to"`
	Message    *string `json:"message"` // nil: no text in a supported coding
	ReceivedAt Time    `json:"received_at"`
	OptOut     string  `json:"opt_out,omitempty"`   // "stop" or "start": the text begins with such a word
	MoreText   bool    `json:"more_text,omitempty"` // it says more than the word and a sender's name
}

// LowBalanceData is the data of LowBalance.
type LowBalanceData struct {
	CompanyID int64 `json:"company_id"`
	Credits   int64 `json:"credits"`
	Threshold int64 `json:"threshold"`
}

// BatchFinishedData is the data of BatchFinished.
type BatchFinishedData struct {
	BatchID         string `json:"batch_id"`
	RecipientsCount int    `json:"recipients_count"`
	Sent            int    `json:"sent"`
	Failed          int    `json:"failed"`
	Cancelled       int    `json:"cancelled"` // of the failed ones

	LeftOut map[string]int `json:"left_out,omitempty"` // of a campaign, by reason
}

// VerificationFinishedData is the data of VerificationFinished.
type VerificationFinishedData struct {
	ID          string `json:"verification_id"` // ULID
	PhoneNumber string `json:"phone_number"`
	Status      string `json:"status"`
	FinishedAt  Time   `json:"finished_at"`
	Sends       int    `json:"sends"`
	WrongChecks int    `json:"wrong_checks"`
	Reference   string `json:"client_reference,omitempty"`
}

// Time marshals as RFC 3339 to the second, with a numeric offset even for UTC.
type Time struct{ time.Time }

const timestampLayout = "2006-01-02T15:04:05-07:00"

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) { return t.append(nil), nil }

func (t Time) append(b []byte) []byte { return t.UTC().AppendFormat(b, `"`+timestampLayout+`"`) }

// appendBody appends the body of rule api 6: exactly these fields for a message, plus the customer's own names of
// the message. Every attempt rebuilds the body and must send the same bytes, so the result for an event must never
// change.
func appendBody(b []byte, e *storedEvent) []byte {
	event := eventName(e.id)
	b = append(append(append(b, `{"event":"`...), event...), `","timestamp":`...)
	from := len(b)
	b = Time{e.at}.append(b)
	at := b[from:]
	b = append(b, `,"data":`...)
	if e.data != "" {
		return append(append(b, e.data...), '}')
	}
	b = strconv.AppendInt(append(b, `{"message_id":`...), messageOf(max(0, e.id)), 10)
	b = appendText(append(b, `,"phone_number":`...), e.number)
	b = append(append(append(b, `,"status":"`...), event...), `","sent_at":`...)
	if event == Sent {
		b = append(append(b, at...), `,"failed_at":null`...)
	} else {
		b = append(append(b, `null,"failed_at":`...), at...)
	}
	return append(append(b, e.labels...), "}}"...)
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

// idSpan is how many delivery ids one message has. It exceeds the number of events, so that a new event does not move
// existing ids.
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

// webhookID identifies duplicates for the receiver: it is the same in all attempts and re-sends of a delivery. It
// contains no full stop, because Standard Webhooks separates the signed parts with it.
func webhookID(delivery int64) string { return string(appendWebhookID(nil, delivery)) }

func appendWebhookID(b []byte, delivery int64) []byte {
	if delivery < 0 { // a test event
		return strconv.AppendInt(append(b, "evt_test_"...), -delivery, 10)
	}
	return strconv.AppendInt(append(b, "evt_"...), delivery, 10)
}
