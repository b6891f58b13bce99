package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/billing"
	"intumwa/dispatcher"
	"intumwa/internal/audit"
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

	ClientReference string     `json:"client_reference,omitempty"`
	SendAt          *time.Time `json:"send_at,omitempty"`
	ExpireAt        *time.Time `json:"expire_at,omitempty"`
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
	SubmittedAt *time.Time `json:"submitted_at"` // null: not recorded; the carrier may have it
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

// do shows the message with its segments, carrier ids, history and webhook deliveries.
func (c *adminMessageShowCmd) do(ctx context.Context, o *operator) (any, error) {
	id, err := ulid.ParseStrict(c.ID)
	number, wrong := strconv.ParseInt(c.ID, 10, 64)
	if err != nil && (wrong != nil || number < 1) {
		return nil, fmt.Errorf("%q is neither a ULID nor a message_id", c.ID)
	}
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
	m := describe(r, history, deliveries)
	err = m.addDecisions(ctx, o, r)
	return m, err
}

// addDecisions adds to the history what operators decided of a message that its carrier did not answer.
func (m *adminMessage) addDecisions(ctx context.Context, o *operator, r messages.Record) error {
	list, _, err := audit.List(ctx, o.pool, audit.Filter{Message: r.ID, Since: r.CreatedAt}, 0, listPage)
	for _, act := range slices.Backward(list) {
		var after struct{ Reason string }
		if err := json.Unmarshal(act.After, &after); err != nil {
			return fmt.Errorf("reading act %d: %w", act.ID, err)
		}
		moment := adminMoment{At: act.At, Event: "decided",
			Detail: fmt.Sprintf("%s, by %s", strings.TrimPrefix(act.Act, unansweredActs), act.Actor)}
		if after.Reason != "" {
			moment.Detail += ": " + after.Reason
		}
		at := slices.IndexFunc(m.History, func(other adminMoment) bool {
			return other.At.After(act.At) || other.Event == sms.Sent.String() || other.Event == sms.Failed.String()
		})
		if at < 0 {
			at = len(m.History)
		}
		m.History = slices.Insert(m.History, at, moment)
	}
	return err
}

func describe(r messages.Record, history messages.History, deliveries []webhooks.Delivery) adminMessage {
	m := adminMessage{
		ID: r.ULID, MessageID: r.ID, BatchID: r.BatchULID, CompanyID: r.CompanyID, Status: r.Status.String(), To: string(r.Number),
		Sender: r.Sender, Encoding: r.Encoding.String(), SegmentCount: r.Segments, Test: r.Test, Carrier: r.Carrier,
		FailureReason: r.FailureReason, CreatedAt: r.CreatedAt, SentAt: r.SentAt, FailedAt: r.FailedAt,
		ClientReference: r.Reference, SendAt: r.SendAt, ExpireAt: r.ExpireAt,
		Segments: []adminSegment{}, History: []adminMoment{}, Webhooks: []adminWebhookLog{},
	}
	if w := history.Waiting; w != nil {
		waiting := adminWaiting(*w)
		m.Waiting = &waiting
	}
	for _, s := range history.Segments {
		segment := adminSegment{Segment: s.Segment, Carrier: s.Carrier, Link: s.Link, CarrierID: s.CarrierID, Receipt: s.Receipt, Error: s.Error, ReceiptAt: s.ReceiptAt}
		if s.Submitted() {
			segment.SubmittedAt = &s.SubmittedAt
		}
		m.Segments = append(m.Segments, segment)
	}
	for _, moment := range messages.Timeline(r, history) {
		m.History = append(m.History, adminMoment(moment))
	}
	for _, d := range deliveries {
		m.Webhooks = append(m.Webhooks, logOf(d))
	}
	return m
}

func logOf(d webhooks.Delivery) adminWebhookLog {
	return adminWebhookLog{WebhookID: d.WebhookID, Event: d.Event, State: d.State, NextAt: d.NextAt, Attempts: d.Attempts}
}

type adminBatchCmd struct {
	Cancel adminBatchCancelCmd `cmd:"" help:"Stop what no carrier has yet of a bulk or template send, and give its credits back."`
}

type adminBatchCancelCmd struct {
	ID     string `required:"" help:"The batch: batch_id of the send's answer." placeholder:"ULID"`
	Reason string `help:"Why; it stays in the audit log."`
}

type adminCompanyCancelCmd struct {
	ID     int64  `required:"" help:"The company."`
	Reason string `help:"Why; it stays in the audit log."`
}

type adminCancelled struct {
	CompanyID int64 `json:"company_id"`
	Cancelled int64 `json:"cancelled"`
	Credits   int64 `json:"credits_returned"`
	Left      int64 `json:"left"` // still queued, in a dispatcher's hand: cancel again for those that come back
}

// do cancels a batch.
func (c *adminBatchCancelCmd) do(ctx context.Context, o *operator) (any, error) {
	id, err := ulid.ParseStrict(strings.ToUpper(c.ID))
	if err != nil {
		return nil, fmt.Errorf("%q is no ULID", c.ID)
	}
	queued, err := messages.QueuedOf(ctx, o.pool, id)
	if err != nil {
		return nil, err
	}
	return o.cancel(ctx, queued, audit.Entry{Act: "batch.cancel", Subject: "batch " + id.String()}, c.Reason)
}

// do cancels all that a company has queued.
func (c *adminCompanyCancelCmd) do(ctx context.Context, o *operator) (any, error) {
	if _, err := o.accounts().CompanyByID(ctx, c.ID); err != nil {
		return nil, err
	}
	return o.cancel(ctx, messages.Queued{Company: c.ID}, audit.Entry{Act: "company.cancel", Subject: fmt.Sprintf("company %d", c.ID)}, c.Reason)
}

// cancel records the act in the first transaction, and what came of it at the end.
func (o *operator) cancel(ctx context.Context, queued messages.Queued, entry audit.Entry, reason string) (any, error) {
	pool, err := o.busyPool(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	entry.Actor, entry.Company = audit.Operator(), sms.CompanyID(queued.Company)
	done, failed := dispatcher.Cancel(ctx, pool, messages.New(pool), o.openWebhooks(), queued, func(tx pgx.Tx) error {
		entry.After = map[string]any{"reason": reason}
		return audit.Record(ctx, tx, entry)
	})
	result := adminCancelled{CompanyID: queued.Company, Cancelled: done.Cancelled, Credits: done.Credits}
	if failed != nil && done.Cancelled == 0 {
		return nil, failed
	}
	result.Left, err = messages.New(pool).Left(ctx, queued)
	err = errors.Join(failed, err, o.change(ctx, func(pgx.Tx) (audit.Entry, error) {
		entry.Act += ".done"
		entry.After = result
		return entry, nil
	}))
	return result, err
}

type adminTopCmd struct {
	Since instant `help:"In which time: since a time, a date, or 1h for the last hour." default:"1h" placeholder:"T"`
	Limit int     `help:"How many at most." default:"10"`
}

type adminSpender struct {
	CompanyID int64   `json:"company_id"`
	Name      string  `json:"name"`
	Approved  bool    `json:"approved"`
	Segments  int64   `json:"segments"`
	Requests  int64   `json:"requests"`
	Share     float64 `json:"share"` // of all companies' segments, in percent
	Queued    int64   `json:"queued"`
}

// do lists who sends most: the segments that were accepted of each company, and what of it waits for a carrier now.
func (c *adminTopCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Limit < 1 || c.Limit > 1000 {
		return nil, errors.New("--limit must be from 1 to 1000")
	}
	spenders, all, err := billing.New(o.pool).Spenders(ctx, c.Since.moment().UTC().Truncate(time.Second), c.Limit)
	if err != nil {
		return nil, err
	}
	queues, err := messages.New(o.pool).Queues(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]adminSpender, len(spenders)) // [] in JSON, not null
	for i, s := range spenders {
		company, err := o.accounts().CompanyByID(ctx, s.CompanyID)
		if err != nil {
			return nil, err
		}
		list[i] = adminSpender{CompanyID: s.CompanyID, Name: company.Name, Approved: company.Approved, Segments: s.Credits, Requests: s.Requests,
			Share: math.Round(1000*float64(s.Credits)/float64(all)) / 10, Queued: queues[s.CompanyID]}
	}
	return list, nil
}
