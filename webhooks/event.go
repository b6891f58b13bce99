package webhooks

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// The two event names there are. rule api 6
const (
	Sent   = "sms.sent"
	Failed = "sms.failed"
)

// Event is a message's final transition.
type Event struct {
	CompanyID   int64
	MessageID   int64  // the integer id of rule api 2.3
	Name        string // Sent or Failed
	PhoneNumber string // E.164
	At          time.Time
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
	switch name {
	case Sent:
		return messageID * idSpan, nil
	case Failed:
		return messageID*idSpan + 1, nil
	}
	return 0, fmt.Errorf("message %d: no such webhook event %q", messageID, name)
}

// messageOf and eventName undo deliveryID.
func messageOf(delivery int64) int64 { return delivery / idSpan }

func eventName(delivery int64) string {
	if delivery%idSpan == 0 { // a test's id, below zero, leaves a rest as well
		return Sent
	}
	return Failed
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

// appendBody appends the body of rule api 6: these fields in this order, nothing
// else. What it makes of an event never changes: it is made anew for every
// attempt, and is to be the same octets.
func appendBody(b []byte, e *Event) []byte {
	b = append(b, `{"event":"`...)
	b = append(b, e.Name...)
	b = append(b, `","timestamp":`...)
	b = appendTime(b, e.At)
	b = append(b, `,"data":{"message_id":`...)
	b = strconv.AppendInt(b, e.MessageID, 10)
	b = append(b, `,"phone_number":`...)
	b = appendString(b, e.PhoneNumber)
	b = append(b, `,"status":"`...)
	b = append(b, e.Name...)
	if e.Name == Sent {
		b = append(b, `","sent_at":`...)
		b = appendTime(b, e.At)
		return append(b, `,"failed_at":null}}`...)
	}
	b = append(b, `","sent_at":null,"failed_at":`...)
	b = appendTime(b, e.At)
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
