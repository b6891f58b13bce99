package stories

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"
)

// message is the output of `admin message show`.
type message struct {
	ID            string     `json:"id"`
	MessageID     int64      `json:"message_id"`
	CompanyID     int64      `json:"company_id"`
	Status        string     `json:"status"`
	To            string     `json:"to"`
	Sender        string     `json:"sender"`
	Encoding      string     `json:"encoding"`
	SegmentCount  int        `json:"segment_count"`
	Test          bool       `json:"test"`
	Carrier       string     `json:"carrier"`
	FailureReason string     `json:"failure_reason"`
	CreatedAt     time.Time  `json:"created_at"`
	SentAt        *time.Time `json:"sent_at"`
	FailedAt      *time.Time `json:"failed_at"`
	Segments      []struct {
		Segment   int    `json:"segment"`
		Link      string `json:"link"`
		CarrierID string `json:"carrier_id"`
		Receipt   string `json:"receipt"`
	} `json:"segments"`
	History []struct {
		At    time.Time `json:"at"`
		Event string    `json:"event"`
	} `json:"history"`
	Webhooks []struct {
		WebhookID string `json:"webhook_id"`
		Event     string `json:"event"`
		State     string `json:"state"`
		Attempts  []struct {
			Status int    `json:"status"`
			Result string `json:"result"`
		} `json:"attempts"`
	} `json:"webhook_deliveries"`
}

// events is the message's history, one line each.
func (m message) events() []string {
	var list []string
	for _, moment := range m.History {
		list = append(list, moment.Event)
	}
	return list
}

// message reads a message through the operator's command.
func (w *world) message(id string) message {
	w.t.Helper()
	var m message
	w.orders(&m, "", "message", "show", "--id", id)
	return m
}

// finalWithin bounds the time of an unhindered message.
const finalWithin = 15 * time.Second

// becomes waits until a message is final and reads it.
func (w *world) becomes(id, status string) message {
	w.t.Helper()
	uuid := [16]byte(ulid.MustParse(id))
	final := w.comesTrue(finalWithin, func() bool {
		return scalar[int](w, `SELECT status FROM messages WHERE ulid = $1`, uuid) != 0
	})
	m := w.message(id)
	if !final || m.Status != status {
		w.t.Fatalf("message %s is %s (%s), want %s; its history: %v", id, m.Status, m.FailureReason, status, m.events())
	}
	return m
}

// record is a message's row.
type record struct {
	ID        string // ULID
	MessageID int64
	Number    string
	Body      string
	Segments  int64
	Status    string
	Reason    string
}

// records lists a company's messages in the database.
func (c *company) records() []record {
	c.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	rows, err := c.w.pool.Query(ctx, `
		SELECT ulid, id, phone_number, body, segments, (ARRAY['pending', 'sent', 'failed'])[status + 1],
			coalesce(failure_reason, '')
		FROM messages WHERE company_id = $1 ORDER BY id`, c.id)
	if err != nil {
		c.w.t.Fatalf("reading the messages: %v", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r record, err error) {
		var id [16]byte
		err = row.Scan(&id, &r.MessageID, &r.Number, &r.Body, &r.Segments, &r.Status, &r.Reason)
		r.ID = ulid.ULID(id).String()
		return r, err
	})
	if err != nil {
		c.w.t.Fatalf("reading the messages: %v", err)
	}
	return list
}

// audit is the output of `admin audit`.
type audit struct {
	Companies          int `json:"companies"`
	BalanceMismatches  int `json:"balance_mismatches"`
	StuckPending       int `json:"stuck_pending"`
	OrphanQueueEntries int `json:"orphan_queue_entries"`
	UnpaidMessages     int `json:"unpaid_messages"`
	UnrecordedDebits   int `json:"unrecorded_debits"`
}

// audited fails the story unless ledger, balances and messages agree.
func (w *world) audited() {
	w.t.Helper()
	var found audit
	err := w.admin(&found, "", "audit")
	if want := (audit{Companies: len(w.companies)}); err != nil || found != want {
		w.t.Errorf("admin audit: %+v (%v), want %+v", found, err, want)
	}
}
