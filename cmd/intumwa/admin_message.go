package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
)

type adminMessageCmd struct {
	Show adminMessageShowCmd `cmd:"" help:"Everything that is known of a message."`
}

type adminMessageShowCmd struct {
	ID string `required:"" help:"The message's ULID, or the message_id of its webhooks." placeholder:"ID"`
}

// adminMessage is a message for operators. Its text is not among it: whoever must read it looks in the database.
type adminMessage struct {
	ID            ulid.ULID         `json:"id"`
	MessageID     int64             `json:"message_id"`
	BatchID       *ulid.ULID        `json:"batch_id"`
	CompanyID     int64             `json:"company_id"`
	Status        string            `json:"status"`
	To            string            `json:"to"`
	Sender        string            `json:"sender"`
	Encoding      string            `json:"encoding"`
	SegmentCount  int               `json:"segment_count"`
	Test          bool              `json:"test"`
	Carrier       string            `json:"carrier"`
	FailureReason string            `json:"failure_reason"`
	CreatedAt     time.Time         `json:"created_at"`
	SentAt        *time.Time        `json:"sent_at"`
	FailedAt      *time.Time        `json:"failed_at"`
	Waiting       *adminWaiting     `json:"waiting"`
	Segments      []adminSegment    `json:"segments"`
	History       []adminMoment     `json:"history"`
	Webhooks      []adminWebhookLog `json:"webhook_deliveries"`
}

type adminWaiting struct {
	Attempts  int       `json:"attempts"`
	DueAt     time.Time `json:"due_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Claimed   bool      `json:"claimed"`
}

type adminSegment struct {
	Segment     int        `json:"segment"`
	Carrier     string     `json:"carrier"`
	Link        string     `json:"link"`
	CarrierID   string     `json:"carrier_id"`
	SubmittedAt time.Time  `json:"submitted_at"`
	Receipt     string     `json:"receipt"`
	Error       string     `json:"error"`
	ReceiptAt   *time.Time `json:"receipt_at"`
}

type adminMoment struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Detail string    `json:"detail"`
}

type adminWebhookLog struct {
	WebhookID string             `json:"webhook_id"`
	Event     string             `json:"event"`
	State     string             `json:"state"`
	NextAt    *time.Time         `json:"next_at"`
	Attempts  []webhooks.Attempt `json:"attempts"`
}

// human prints the JSON indented: the shape is too deep for a table.
func (m adminMessage) human(w io.Writer) error { return printIndented(w, m) }

func printIndented(w io.Writer, result any) error {
	encoder := json.NewEncoder(plainJSON{w})
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

// Run shows the message with its segments, carrier ids, history and webhook deliveries.
func (c *adminMessageShowCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	id, err := ulid.ParseStrict(c.ID)
	number, wrong := strconv.ParseInt(c.ID, 10, 64)
	if err != nil && (wrong != nil || number < 1) {
		return fmt.Errorf("%q is neither a ULID nor a message_id", c.ID)
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		store := messages.New(o.pool)
		find := func() (messages.Record, error) { return store.AnybodysByULID(ctx, id) }
		if err != nil {
			find = func() (messages.Record, error) { return store.AnybodysByID(ctx, number) }
		}
		r, err := find()
		if err != nil {
			return nil, fmt.Errorf("message %s: %w", c.ID, err)
		}
		history, err := store.HistoryOf(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		deliveries, err := webhooks.New(o.pool, webhooks.Options{}).DeliveriesOf(ctx, sms.CompanyID(r.CompanyID), r.ID)
		if err != nil {
			return nil, err
		}
		return describe(r, history, deliveries), nil
	})
}

func describe(r messages.Record, history messages.History, deliveries []webhooks.Delivery) adminMessage {
	m := adminMessage{
		ID: r.ULID, MessageID: r.ID, BatchID: r.BatchULID, CompanyID: r.CompanyID, Status: r.Status.String(), To: string(r.Number),
		Sender: r.Sender, Encoding: r.Encoding.String(), SegmentCount: r.Segments, Test: r.Test, Carrier: r.Carrier,
		FailureReason: r.FailureReason, CreatedAt: r.CreatedAt, SentAt: r.SentAt, FailedAt: r.FailedAt,
		Segments: []adminSegment{}, History: []adminMoment{}, Webhooks: []adminWebhookLog{},
	}
	if w := history.Waiting; w != nil {
		waiting := adminWaiting(*w)
		m.Waiting = &waiting
	}
	for _, s := range history.Segments {
		m.Segments = append(m.Segments, adminSegment(s))
	}
	for _, moment := range messages.Timeline(r, history) {
		m.History = append(m.History, adminMoment(moment))
	}
	for _, d := range deliveries {
		m.Webhooks = append(m.Webhooks, adminWebhookLog{WebhookID: d.WebhookID, Event: d.Event, State: d.State, NextAt: d.NextAt, Attempts: d.Attempts})
	}
	return m
}
