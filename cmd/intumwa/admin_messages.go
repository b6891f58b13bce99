package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/billing"
	"intumwa/internal/audit"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/outbox"
	"intumwa/operations"
	"intumwa/sms"
	"intumwa/webhooks"
)

type adminMessageCmd struct {
	Show adminMessageShowCmd `cmd:"" help:"Show everything about a message."`
}

type adminMessageShowCmd struct {
	ID string `required:"" help:"The message's ULID, or the message_id of its webhooks." placeholder:"ID"`
}

// do shows the message with its segments, carrier ids, history and webhook deliveries.
func (c *adminMessageShowCmd) do(ctx context.Context, o *operator) (any, error) {
	id, err := ulid.ParseStrict(c.ID)
	number, wrong := strconv.ParseInt(c.ID, 10, 64)
	if err != nil && (wrong != nil || number < 1) {
		return nil, fmt.Errorf("%q is neither a ULID nor a message_id", c.ID)
	}
	store := lookup.New(o.pool)
	find := func() (lookup.Record, error) { return store.OperatorsByULID(ctx, id) }
	if err != nil {
		find = func() (lookup.Record, error) { return store.OperatorsByID(ctx, number) }
	}
	r, err := find()
	if err != nil {
		return nil, fmt.Errorf("message %s: %w", c.ID, err)
	}
	history, err := store.HistoryOf(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	deliveries, err := webhooks.New(o.pool, webhooks.Options{}).OfMessage(ctx, sms.CompanyID(r.CompanyID), r.ID)
	if err != nil {
		return nil, err
	}
	moments, err := o.withDecisions(ctx, r, lookup.Timeline(r, history))
	return deep{messageOf(r, history, moments, deliveries)}, err
}

// withDecisions adds operators' decisions about an unanswered submit_sm to the history.
func (o *operator) withDecisions(ctx context.Context, r lookup.Record, moments []lookup.Moment) ([]lookup.Moment,
	error) {
	list, _, err := audit.List(ctx, o.pool, audit.Filter{Message: r.ID, Since: r.CreatedAt}, 0, listPage)
	for _, act := range slices.Backward(list) {
		var after struct{ Reason string }
		if err := json.Unmarshal(act.After, &after); err != nil {
			return nil, fmt.Errorf("reading act %d: %w", act.ID, err)
		}
		moment := lookup.Moment{At: act.At, Event: "decided",
			Detail: fmt.Sprintf("%s, by %s", strings.TrimPrefix(act.Act, operations.UnansweredActs), act.Actor)}
		if after.Reason != "" {
			moment.Detail += ": " + after.Reason
		}
		at := slices.IndexFunc(moments, func(other lookup.Moment) bool {
			return other.At.After(act.At) || other.Event == sms.Sent.String() || other.Event == sms.Failed.String()
		})
		if at < 0 {
			at = len(moments)
		}
		moments = slices.Insert(moments, at, moment)
	}
	return moments, err
}

// messageOf is a message for operators, without its text. An operator who must read it looks in the
// database.
func messageOf(r lookup.Record, history lookup.History, moments []lookup.Moment,
	deliveries []webhooks.Delivery) object {
	var refused *string // null: no carrier has refused it for now
	var refusedAt *time.Time
	if no := history.Refused; no != nil {
		refused, refusedAt = &no.Reason, &no.At
	}
	var waiting any // null: no segment waits for a carrier
	if w := history.Waiting; w != nil {
		waiting = object{{"attempts", w.Attempts}, {"due_at", w.DueAt}, {"expires_at", w.ExpiresAt}, {"claimed", w.Claimed},
			{"refused", refused}, {"refused_at", refusedAt}}
	}
	segments, past, events := []object{}, []object{}, []object{}
	for _, s := range history.Segments {
		var submitted *time.Time // null: not recorded; the carrier may have it
		if s.Submitted() {
			submitted = &s.SubmittedAt
		}
		segments = append(segments, object{{"segment", s.Segment}, {"carrier", s.Carrier}, {"link", s.Link},
			{"carrier_id", s.CarrierID},
			{"submitted_at", submitted}, {"receipt", s.Receipt}, {"error", s.Error}, {"receipt_at", s.ReceiptAt}})
	}
	for _, m := range moments {
		past = append(past, object{{"at", m.At}, {"event", m.Event}, {"detail", m.Detail}})
	}
	for _, d := range deliveries {
		events = append(events, eventOf(d))
	}
	return object{{"id", r.ULID}, {"message_id", r.ID}, {"batch_id", r.BatchULID}, {"company_id", r.CompanyID},
		{"status", r.Status.String()},
		{"to", string(r.Number)}, {"sender", r.Sender}, {"encoding", r.Encoding.String()}, {"segment_count", r.Segments},
		{"test", r.Test},
		{"carrier", r.Carrier}, {"failure_reason", r.FailureReason}, {"created_at", r.CreatedAt}, {"sent_at", r.SentAt},
		{"failed_at", r.FailedAt},
		{"waiting", waiting}, {"segments", segments}, {"history", past}, {"webhook_deliveries", events},
		{"channel", r.Channel.String()}, {"client_reference", optional{r.Reference}}, {"cost_center", optional{r.CostCenter}},
		{"send_at", optional{r.SendAt}}, {"expire_at", optional{r.ExpireAt}}}
}

func eventOf(d webhooks.Delivery) object {
	return object{{"webhook_id", d.WebhookID}, {"event", d.Event}, {"state", d.State}, {"next_at", d.NextAt},
		{"attempts", d.Attempts}}
}

type adminBatchCmd struct {
	Cancel adminBatchCancelCmd `cmd:"" help:"Cancel and refund the messages of a batch that no carrier has."`
}

type adminBatchCancelCmd struct {
	ID     string `required:"" help:"The batch: batch_id of the send's answer." placeholder:"ULID"`
	Reason string `aliases:"note" help:"Why; it stays in the audit log."`
}

type adminCompanyCancelCmd struct {
	ID     int64  `required:"" aliases:"company" help:"The company."`
	Reason string `aliases:"note" help:"Why; it stays in the audit log."`
}

func (c *adminBatchCancelCmd) do(ctx context.Context, o *operator) (any, error) {
	id, err := ulid.ParseStrict(strings.ToUpper(c.ID))
	if err != nil {
		return nil, fmt.Errorf("%q is no ULID", c.ID)
	}
	queued, err := messages.QueuedOf(ctx, o.pool, id)
	if err != nil {
		return nil, err
	}
	return o.cancel(ctx, func(by operations.Actor) (*operations.Cancelled, error) {
		return by.CancelBatch(ctx, id, queued, c.Reason)
	})
}

// do cancels a company's queued messages.
func (c *adminCompanyCancelCmd) do(ctx context.Context, o *operator) (any, error) {
	if _, err := o.companies().CompanyByID(ctx, c.ID); err != nil {
		return nil, err
	}
	return o.cancel(ctx, func(by operations.Actor) (*operations.Cancelled, error) {
		return by.CancelCompany(ctx, c.ID, c.Reason)
	})
}

func (o *operator) cancel(ctx context.Context, work func(operations.Actor) (*operations.Cancelled, error)) (
	any, error) {
	pool, err := o.busyPool(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	done, err := work(o.by(pool))
	if done == nil {
		return nil, err
	}
	return *done, err
}

type adminTopCmd struct {
	Since instant `help:"In which time: since a time, a date, or 1h for the last hour." default:"1h" placeholder:"T"`
	Limit int     `help:"How many at most." default:"10"`
}

// do lists the busiest companies: accepted segments, and those that wait for a carrier.
func (c *adminTopCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Limit < 1 || c.Limit > 1000 {
		return nil, errors.New("--limit must be from 1 to 1000")
	}
	spenders, all, err := billing.New(o.pool).Spenders(ctx, c.Since.moment().UTC().Truncate(time.Second), c.Limit)
	if err != nil {
		return nil, err
	}
	queues, err := outbox.New(o.pool).Queues(ctx)
	if err != nil {
		return nil, err
	}
	list := []object{} // [] in JSON, not null
	for _, s := range spenders {
		company, err := o.companies().CompanyByID(ctx, s.CompanyID)
		if err != nil {
			return nil, err
		}
		share := math.Round(1000*float64(s.Credits)/float64(all)) / 10 // percent of all companies' segments
		list = append(list, object{{"company_id", s.CompanyID}, {"name", company.Name}, {"approved", company.Approved},
			{"segments", s.Credits},
			{"requests", s.Requests}, {"share", share}, {"queued", queues[s.CompanyID]}})
	}
	return list, nil
}
