// Package webhooks sends events about final messages to customers: signed, with retries, isolated from each other (rule
// api 6).
//
// # Guarantees
//
// A final message of a company with an active endpoint has exactly one delivery: a row of webhook_deliveries, or until
// its first call has ended an element of webhook_first_calls. [Webhooks.Enqueue] writes it in the transaction that
// settles the message: both exist or neither. The body is a pure function of columns that never change, so every
// attempt and every re-send sends the same bytes under the same webhook-id. Delivery is at least once: receivers drop
// duplicates by webhook-id, or by message_id and event.
//
// # Events on request
//
// An event that is not about one of the company's messages goes only to endpoints that requested it ([Askable],
// [Endpoint.Events]). Its row holds the body's data. Its number comes from the sequence of messages, so one order lists
// all events.
//
// # An attempt
//
// An attempt succeeds if a 2xx status arrives within the timeout. Anything else is a failure, even a redirect. Nothing
// after the status changes this, however odd (TestOddAnswers). The row keeps every attempt. Until one succeeds, the row
// is in the partition webhook_undelivered. It is due at once; after a failure it is due after the schedule's next
// delay; after the last failure it is never due. Such a delivery stays visible, and only [Webhooks.Resend] and
// [Webhooks.Recover] send it again. The statement that records a success moves the row to webhook_delivered. Deliveries
// older than Options.Retention are deleted.
//
// # Claims
//
// Any number of processes run [Webhooks.Run]. Each claims due rows with one statement for all endpoints that it has
// room for. The statement writes when the claim ends. That time also identifies the claim: a result is recorded only
// while the row still has it. So each result is recorded once, and never after another process has claimed the row.
//
// Most first attempts need no claim. While the process's Run has room for a quick endpoint, Enqueue adds the event to
// the transaction's row of webhook_first_calls, and the call starts after the COMMIT. One statement deletes that row
// and gives each of its deliveries its own, with the result, in its final partition if the call succeeded. It waits for
// the row's last result, but a second at most; calls in flight are claimed then. If the process dies, another one
// deletes the row after its end and makes all its deliveries due. So whoever deletes the row decides about its
// deliveries, once. Lists and erasing read both tables.
//
// An event is posted only after its claim is committed. That COMMIT is the event's own or comes after it in the log,
// and it waits for the synchronous standby, if there is one. So a failover cannot lose an event that an endpoint has
// received. A claim whose COMMIT got no reply is not used.
//
// A kick makes the process check all active endpoints for deliveries that became due in the last seconds: one index
// probe per endpoint. Without a kick it checks every Options.Idle. Every 20 Options.Idle it checks for everything that
// is due. The frequent check needs its range because an old snapshot, such as a backup's, keeps deleted rows, and each
// check has to pass those in its range. docs/decisions.md has the figures.
//
// # Failures
//
//   - A process dies: its claims end by their time, 20 s plus the call timeout after they began, and other processes
//     make the calls. Calls whose result was not stored are repeated; the lost attempt does not count.
//   - A process freezes: after it wakes, it starts no call that could outlast its claim, and results of ended claims
//     are not stored.
//   - A process shuts down: it claims nothing more, releases deliveries that it has not called, gives calls in flight a
//     limited time, and stores their results. A call that it cuts off is repeated.
//   - PostgreSQL is down: results wait in memory, and too many of them block further calls.
//   - PostgreSQL's clock is set forward: claims end early, and calls in flight may be made twice. Set back: waiting
//     deliveries are due that much later.
//   - An endpoint changes: each claim reads the endpoint, so pending deliveries go to the new URL, signed with the new
//     secret ([Webhooks.EndpointChanged]).
//   - An endpoint is deactivated: its pending deliveries wait, their attempts untouched, until it is active again.
//     Messages that become final meanwhile emit nothing (rule api 6).
//
// # Isolation
//
// In each process an endpoint has a limit of calls in flight: low at first, higher while responses are quick, and low
// again at the first failure. Endpoints whose last call was slow share half of all calls, so any number of hanging
// endpoints leaves the other half free. The first call shows whether an endpoint is slow. A quick endpoint has up to
// eight waiting deliveries per call, and gets more only while the process has a call left; so endpoints with backlogs
// take turns. New events are handed over only while no older ones wait for the endpoint. Claims use an index that
// starts with the company.
package webhooks

import (
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/vault"
	"intumwa/sms"
)

// Webhooks stores endpoints and delivers events. It is safe for concurrent use.
type Webhooks struct {
	*core

	running atomic.Pointer[deliverer]

	testsMu sync.Mutex
	tests   map[sms.CompanyID]bool // those under way
}

// New does no I/O and starts nothing. Run needs a pool with postgres.Options.BatchUpdates, because its updates join
// unnested arrays.
func New(pool *pgxpool.Pool, opts Options) *Webhooks {
	opts = opts.withDefaults()
	c := &core{
		pool:    pool,
		lookups: pool,
		opts:    opts,
		guard:   newGuard(opts.AllowPrivate),
		vault:   vault.New(opts.SecretKey, "company"),
		log:     opts.Log,
		metrics: newMetrics(opts.Metrics),
		kick:    make(chan struct{}, 1),
		changed: new(atomic.Bool),
		waiters: newWaiters(),
	}
	c.client = newClient(opts.Timeout, opts.InFlight, opts.resolver, c.guard)
	if opts.Lookups != nil {
		c.lookups = opts.Lookups
	}
	return &Webhooks{core: c, tests: make(map[sms.CompanyID]bool)}
}

// In returns a copy that works in the caller's transaction. Call Kick of the original after the commit. Do not call Run
// of the copy.
func (w *Webhooks) In(tx pgx.Tx) *Webhooks {
	c := *w.core
	c.pool, c.lookups, c.kick, c.changed = tx, tx, make(chan struct{}, 1), new(atomic.Bool)
	return &Webhooks{core: &c}
}

// Kick wakes Run after deliveries were committed, so that their first attempts start at once. It never blocks, and does
// nothing while Run is not running.
func (w *Webhooks) Kick() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// EndpointChanged is the callback of a notice. It makes Run release a company's uncalled deliveries and look for
// waiting ones. It never blocks.
func (w *Webhooks) EndpointChanged(company string) {
	if d := w.running.Load(); d != nil {
		d.releaseWaiting(company)
	}
	w.changed.Store(true)
	w.Kick()
}
