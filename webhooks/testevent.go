package webhooks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// ErrBusy means that a test of this endpoint, or too many others, are running.
var ErrBusy = errors.New("a test is under way")

// testsAtOnce limits the open test calls of one process.
const testsAtOnce = 16

// TestResult is a test event and the endpoint's response.
type TestResult struct {
	WebhookID string // evt_test_…
	Event     string
	Body      string
	Attempt   Attempt // keeps the beginning of the response even of a success
}

// Test sends a company's endpoint one event, in the usual form and signature, and returns the response. The deliveries
// do not show it. Its message_id is 0, which no message has, and its webhook-id begins with evt_test_ and is unique.
// Inactive endpoints can be tested too. The errors are ErrNotFound, ErrBusy, or those of Postgres; a failed call is not
// an error.
func (w *Webhooks) Test(ctx context.Context, company sms.CompanyID, event string) (TestResult, error) {
	number := slices.Index(eventNames[:], event)
	if event != Sent && event != Failed && !slices.Contains(Askable(), event) {
		return TestResult{}, fmt.Errorf("testing a webhook endpoint: no such event %q", event)
	}
	leave, ok := w.enterTest(company)
	if !ok {
		return TestResult{}, fmt.Errorf("testing the webhook endpoint of company %d: %w", company, ErrBusy)
	}
	defer leave()
	var stored storedEndpoint
	err := w.pool.QueryRow(ctx, `SELECT `+storedColumns+` FROM webhook_endpoints e WHERE e.company_id = $1`,
		int64(company)).Scan(stored.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	var t *target
	if err == nil {
		t, err = w.newTarget(stored)
	}
	if err != nil {
		return TestResult{}, fmt.Errorf("testing the webhook endpoint of company %d: %w", company, err)
	}
	// Deliveries of messages have positive ids. The number is not a secret, only unique.
	e := storedEvent{id: -(1+rand.Int64N(1<<50))*idSpan - int64(number), number: "+25761000000", at: postgres.Now()}
	text := "STOP"
	switch event {
	case Received:
		e.data = string(jsonOf(ReceivedData{From: "+25761000000", To: "8080", Message: &text, ReceivedAt: Time{e.at}}))
	case LowBalance:
		e.data = string(jsonOf(LowBalanceData{Threshold: 100}))
	case BatchFinished:
		e.data = string(jsonOf(BatchFinishedData{BatchID: ulid.ULID{}.String(), RecipientsCount: 2, Sent: 1, Failed: 1}))
	case VerificationFinished:
		e.data = string(jsonOf(VerificationFinishedData{ID: ulid.ULID{}.String(), PhoneNumber: e.number, Status: "approved",
			FinishedAt: Time{e.at}, Sends: 1}))
	}
	attempt, _, ok := w.call(ctx, t, &e, true)
	if !ok {
		return TestResult{}, fmt.Errorf("testing the webhook endpoint of company %d: %w", company, context.Cause(ctx))
	}
	attempt.Number = 1
	return TestResult{WebhookID: webhookID(e.id), Event: event, Body: string(appendBody(nil, &e)), Attempt: attempt}, nil
}

// enterTest counts a test until leave. It allows one test per company, and testsAtOnce in all.
func (w *Webhooks) enterTest(company sms.CompanyID) (leave func(), ok bool) {
	w.testsMu.Lock()
	defer w.testsMu.Unlock()
	if w.tests[company] || len(w.tests) >= testsAtOnce {
		return nil, false
	}
	w.tests[company] = true
	return func() {
		w.testsMu.Lock()
		defer w.testsMu.Unlock()
		delete(w.tests, company)
	}, true
}
