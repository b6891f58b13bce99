// Package switchboard routes MOs. It takes each stored MO (handsets.Store.Fresh) and, in one transaction, records the
// outcome, stores the company's message with its event, and adds or removes an opt-out with its acknowledgement.
//
// # Routes
//
//  1. An operator's route from the MO's destination (handsets.Routes.Find).
//  2. Without one, the only company with that address as an approved sender.
//  3. Otherwise no company: only operators see the MO.
//
// # STOP and START
//
// A message that begins with a stop word is also an opt-out from its company. If several companies share an address,
// the second word chooses the route (STOP ACME). The opt-out applies to the sender that the route names, or that the
// second word names, or that has the name of the address; else to all senders of the company. A start word removes the
// entry that the same message with a stop word would add; if that is the entry for all senders, it removes all entries
// of the number at the company. Without a company there is no opt-out, and the message is counted.
//
// # Answers and groups
//
// A message under a route with an answer is marked (handsets.AnswerDue), and package answers sends the answer as a
// single send of the company; or it is noted why there is none. The number joins and leaves the route's groups in the
// transaction that stores the message. Neither happens with a stop or start word.
//
// # One at a time
//
// Any number of processes run it; one at a time routes, for the duration of its transaction (an advisory lock). So
// repetitions and parts meet the earlier ones, and one handset's messages keep their order. A message that needs a row
// locked by another transaction waits, with all later ones of the same handset, and delays no other handset's.
package switchboard

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intumwa/accounts/companies"
	"intumwa/accounts/senders"
	"intumwa/contacts"
	"intumwa/inbound/handsets"
	"intumwa/internal/postgres"
	"intumwa/internal/queue"
	"intumwa/messages"
	"intumwa/smppserver/binds"
	"intumwa/sms"
	"intumwa/webhooks"
)

const (
	interval     = time.Second           // between rounds without a kick
	busyPause    = 50 * time.Millisecond // while another process routes
	errorPause   = 2 * time.Second
	atOnce       = 100 // messages of a transaction
	roundWithin  = 30 * time.Second
	lockWait     = time.Second      // for a row locked by another transaction
	delayedWait  = lockWait / 10    // the same while messages wait for one already: there may be many
	delayedPause = 5 * time.Second  // before a handset's waiting message is tried again
	unsurePause  = interval / 2     // before a message is looked at again that may be a repetition
	delayedShare = 4                // and at least this many times the duration of trying all of them
	sweepEvery   = 10 * time.Second // between looks for overdue parts
	lock         = 0x73776274       // advisory lock: one process of a database at a time

	// Limit of acknowledgements to a handset: repliesMost within repliesWithin.
	repliesMost   = 4
	repliesWithin = 24 * time.Hour
)

// Options configures a Switchboard.
type Options struct {
	Assembly time.Duration // how long a part waits for the others; default 10 min
	Repeats  time.Duration // within which the same message is a repetition; 0: never

	StopWords, StartWords []string // as handsets.Word writes them
	StopReply, StartReply string   // acknowledgements; "": none

	// sender of an acknowledgement if the handset's address cannot be one
	TestSender string
	Validity   time.Duration                   // of acknowledgements; default 24 h
	Route      func(sms.Number) (string, bool) // the carrier of a number; nil: no acknowledgements
	Log        *slog.Logger                    // nil: discarded
	Metrics    prometheus.Registerer           // nil: not registered
	// puts acknowledgements on the queue; nil: the dispatchers find them
	Push func(context.Context, []queue.Item) error

	// wakes whoever sends the answers of routes (handsets.Store.DueAnswers); nil: they look themselves
	Answer func()
}

// Switchboard routes MOs.
type Switchboard struct {
	opts      Options
	pool      *pgxpool.Pool
	companies *companies.Store
	senders   *senders.Store
	handsets  *handsets.Store
	contacts  *contacts.Store
	messages  *messages.Store
	webhooks  *webhooks.Webhooks
	log       *slog.Logger
	metrics   *metrics
	kick      chan struct{}

	delayed map[string]time.Time // handsets whose messages wait, until when; used by Run only
	swept   time.Time            // used by Run only
}

type metrics struct {
	outcomes *prometheus.CounterVec // outcome
	optOuts  *prometheus.CounterVec // change
	replies  prometheus.Counter
	oldest   prometheus.Gauge
}

// New returns the switchboard of a database; open pool with BatchUpdates. It starts nothing.
func New(pool *pgxpool.Pool, companies *companies.Store, senders *senders.Store, hooks *webhooks.Webhooks,
	opts Options) *Switchboard {
	if opts.Assembly == 0 {
		opts.Assembly = 10 * time.Minute
	}
	if opts.Validity == 0 {
		opts.Validity = 24 * time.Hour
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	register := promauto.With(opts.Metrics)
	m := &metrics{
		outcomes: register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_handset_messages_total",
			Help: "MOs by outcome. Each part of a long message counts."}, []string{"outcome"}),
		optOuts: register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_opt_out_messages_total",
			Help: "MOs with a stop or start word, by change; unclear: no company found."}, []string{"change"}),
		replies: register.NewCounter(prometheus.CounterOpts{Name: "intumwa_opt_out_replies_total",
			Help: "Acknowledgements of opt-outs."}),
		oldest: register.NewGauge(prometheus.GaugeOpts{Name: "intumwa_handset_messages_waiting_seconds",
			Help: "How long the oldest MO has waited for its route."}),
	}
	for _, outcome := range handsets.Outcomes() {
		m.outcomes.WithLabelValues(string(outcome))
	}
	for _, change := range changes {
		m.optOuts.WithLabelValues(change)
	}
	return &Switchboard{opts: opts, pool: pool, companies: companies, senders: senders, handsets: handsets.New(pool),
		contacts: contacts.New(pool),
		messages: messages.New(pool), webhooks: hooks,
		log: opts.Log, metrics: m, kick: make(chan struct{}, 1), delayed: map[string]time.Time{}}
}

// Changes by a stop or start word: labels of a metric.
const (
	changeStop    = "stop"
	changeStart   = "start"
	changeNone    = "none"
	changeUnclear = "unclear"
)

var changes = []string{changeStop, changeStart, changeNone, changeUnclear}

// Kick wakes Run after messages were stored. It never blocks.
func (b *Switchboard) Kick() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// Run routes messages until ctx ends. During an outage of the database it tries again.
func (b *Switchboard) Run(ctx context.Context) error {
	failing := false
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.kick:
		case <-timer.C:
		}
		pause, err := b.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failing:
			b.log.Warn("messages from handsets cannot be routed; trying again", "event", "mo_routing_failed", "error", err)
		case err == nil && failing:
			b.log.Info("messages from handsets are routed again", "event", "mo_routing_resumed")
		}
		if failing = err != nil; failing {
			pause = errorPause
		}
		timer.Reset(pause)
	}
}

// look routes the new messages and returns the pause until the next look.
func (b *Switchboard) look(ctx context.Context) (pause time.Duration, err error) {
	within := context.WithoutCancel(ctx) // a shutdown does not interrupt a transaction
	if waits, err := b.measure(within); err != nil {
		return errorPause, err
	} else if !waits { // the usual case
		return interval, b.rest(within)
	}
	maps.DeleteFunc(b.delayed, func(_ string, until time.Time) bool { return time.Now().After(until) })
	for limit := atOnce; ctx.Err() == nil; {
		done, mine, err := b.round(within, limit)
		switch {
		case err == nil && !mine:
			return busyPause, nil
		case err == nil && done == limit:
			continue
		case err == nil && limit < atOnce && done > 0:
			continue
		case err == nil:
			return interval, b.rest(within)
		case limit > 1 && (postgres.Refused(err) || postgres.Locked(err)):
			limit = 1 // one by one: a message that has to wait must not stop the others
		case postgres.Refused(err) || postgres.Locked(err):
			if err := b.setAside(within, err); err != nil {
				return errorPause, err
			}
		default:
			return errorPause, err
		}
	}
	return interval, nil
}

// work is the result of one transaction, for the steps after its commit.
type work struct {
	tx       pgx.Tx
	store    *handsets.Store
	outcomes map[handsets.Outcome]int
	changes  map[string]int
	events   []webhooks.Event
	replies  []*messages.Message

	deliveries []binds.Delivery // for binds of customers
	answers    map[handsets.AnswerState]int
	move       *move // of a number between groups; nil: none yet
}

// round routes up to limit messages in one transaction. mine is false when another process routes.
func (b *Switchboard) round(ctx context.Context, limit int) (done int, mine bool, err error) {
	w, mine, err := b.within(ctx, func(ctx context.Context, w *work) error {
		fresh, err := w.store.Fresh(ctx, limit, b.waiting())
		done = len(fresh)
		for i := range fresh {
			if _, waits := b.delayed[fresh[i].Source]; waits { // its order is kept
				continue
			}
			taken, err := b.take(ctx, w, fresh[i])
			if err != nil {
				return err
			}
			if !taken {
				b.delayed[fresh[i].Source] = time.Now().Add(unsurePause)
			}
			if w.move != nil { // the others follow in further transactions
				done = limit
				return nil
			}
		}
		return err
	})
	if err != nil || !mine {
		return 0, mine, err
	}
	b.committed(w)
	return done, true, nil
}

// within runs do in a transaction with the lock, and stores the results.
func (b *Switchboard) within(ctx context.Context, do func(context.Context, *work) error) (w *work, mine bool,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	var ids []int64
	err = postgres.InTx(ctx, b.pool, func(tx pgx.Tx) error {
		w = &work{tx: tx, store: b.handsets.In(tx), outcomes: map[handsets.Outcome]int{}, changes: map[string]int{},
			answers: map[handsets.AnswerState]int{}}
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1) FROM set_config('lock_timeout', $2, true)`, lock,
			b.lockWait().String()).Scan(&mine); err != nil || !mine {
			return err
		}
		if err := do(ctx, w); err != nil {
			return err
		}
		if err := b.webhooks.Enqueue(ctx, tx, w.events); err != nil {
			return err
		}
		if err := binds.Add(ctx, tx, w.deliveries); err != nil {
			return err
		}
		if len(w.replies) > 0 {
			var err error
			if ids, err = b.messages.Insert(ctx, tx, w.replies); err != nil {
				return err
			}
		}
		return b.regroup(ctx, w)
	})
	if err != nil {
		return nil, false, fmt.Errorf("looking at messages from handsets: %w", err)
	}
	b.push(ctx, w.replies, ids)
	return w, mine, nil
}

// push puts acknowledgements on the queue; the dispatchers find the others.
func (b *Switchboard) push(ctx context.Context, replies []*messages.Message, ids []int64) {
	if len(replies) == 0 || b.opts.Push == nil {
		return
	}
	items := make([]queue.Item, len(replies))
	for i, m := range replies {
		items[i] = queue.Item{MessageID: ids[i], CompanyID: m.CompanyID, Carrier: m.Carrier, Lane: queue.Lane(m.Lane())}
	}
	if err := b.opts.Push(ctx, items); err != nil {
		b.log.Debug("acknowledgements could not be put on the queue; the dispatchers will", "error", err)
	}
}

// committed counts a transaction's results.
func (b *Switchboard) committed(w *work) {
	for outcome, n := range w.outcomes {
		b.metrics.outcomes.WithLabelValues(string(outcome)).Add(float64(n))
	}
	for change, n := range w.changes {
		b.metrics.optOuts.WithLabelValues(change).Add(float64(n))
	}
	b.metrics.replies.Add(float64(len(w.replies)))
	if w.answers[handsets.AnswerDue] > 0 && b.opts.Answer != nil {
		b.opts.Answer()
	}
}

// lockWait is how long a transaction waits for a row locked by another one.
func (b *Switchboard) lockWait() time.Duration {
	if len(b.delayed) > 0 {
		return delayedWait
	}
	return lockWait
}

// waiting returns the handsets whose messages wait.
func (b *Switchboard) waiting() []string {
	return slices.AppendSeq([]string{}, maps.Keys(b.delayed))
}

// setAside handles the first message after a failure: it waits for a locked row, or is left to operators if the
// database always refuses it.
func (b *Switchboard) setAside(ctx context.Context, failure error) error {
	_, _, err := b.within(ctx, func(ctx context.Context, w *work) error {
		fresh, err := w.store.Fresh(ctx, 1, b.waiting())
		if err != nil || len(fresh) == 0 {
			return err
		}
		if postgres.Locked(failure) {
			b.delayed[fresh[0].Source] = time.Now().Add(
				max(delayedPause, delayedShare*delayedWait*time.Duration(len(b.delayed))))
			b.log.Warn("a message from a handset waits for a row that another transaction has locked", "event", "mo_waits",
				"inbound", fresh[0].ID)
			return nil
		}
		b.log.Error("the database refuses a message from a handset; only operators see it", "event", "mo_refused", "inbound",
			fresh[0].ID, "error", failure)
		return w.store.Mark(ctx, handsets.Unrouted, 0, fresh[0].ID)
	})
	return err
}

// measure records how long the oldest message has waited, and returns whether there is one.
func (b *Switchboard) measure(ctx context.Context) (waits bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, roundWithin)
	defer cancel()
	since, err := b.handsets.Waits(ctx)
	if err != nil {
		return false, err
	}
	age := time.Duration(0)
	if !since.IsZero() {
		age = max(0, postgres.Now().Sub(since))
	}
	b.metrics.oldest.Set(age.Seconds())
	return !since.IsZero(), nil
}

// rest does the work that is left when no message is new.
func (b *Switchboard) rest(ctx context.Context) error {
	if time.Since(b.swept) < sweepEvery {
		return nil
	}
	for {
		swept := 0
		w, mine, err := b.within(ctx, func(ctx context.Context, w *work) error {
			late, err := w.store.Overdue(ctx, b.opts.Assembly, atOnce)
			if swept = len(late); err != nil {
				return err
			}
			ended := map[int64]bool{}
			for i := range late {
				if ended[late[i].ID] {
					continue
				}
				ids, err := b.giveUp(ctx, w, &late[i])
				if err != nil {
					return err
				}
				for _, id := range ids {
					ended[id] = true
				}
				if w.move != nil {
					swept = atOnce
					return nil
				}
			}
			return nil
		})
		if err != nil || !mine {
			return err
		}
		b.committed(w)
		if swept < atOnce {
			b.swept = time.Now()
			return nil
		}
	}
}
