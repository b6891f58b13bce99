// Package answers sends the answers of routes to messages from handsets: a single send of the company, with its rules
// and its price. switchboard has marked the messages (handsets.AnswerDue).
//
// The transaction that accepts an answer also marks its message, so each answer is sent and charged once, whatever
// fails or dies in between. A refused one is marked with the reason; it is not tried again.
package answers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/letter"
	"intumwa/billing"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

const (
	interval     = 2 * time.Second // between rounds without a kick
	errorPause   = 5 * time.Second
	listed       = 500              // messages that one statement reads
	atOnce       = 2                // answers of a process: verifications need the other turns of intake
	mostFailures = 20               // companies with a failure in one round, which they end
	lateAfter    = time.Hour        // after it came, a message is not answered any more
	readWithin   = 10 * time.Second // what an answer needs, or a transaction that notes why it is not sent
	toldWithin   = 24 * time.Hour   // the owner is told of answers without credits if none was within this time before
)

// Deps are the packages that answers call.
type Deps struct {
	Pool      *pgxpool.Pool
	Companies *companies.Store
	Holders   *keys.Holders
	Intake    *intake.Intake // running
	Log       *slog.Logger
	Metrics   prometheus.Registerer // nil: not registered
}

// Answers sends answers, in any number of processes.
type Answers struct {
	Deps

	handsets *handsets.Store
	kick     chan struct{}
	sent     *prometheus.CounterVec // state
}

// New returns Answers. It starts nothing.
func New(deps Deps) *Answers {
	sent := promauto.With(deps.Metrics).NewCounterVec(prometheus.CounterOpts{Name: "intumwa_keyword_answers_total",
		Help: "Answers to keywords that were due, by what became of them: sent, or why not."}, []string{"state"})
	sent.WithLabelValues(string(handsets.AnswerSent))
	return &Answers{Deps: deps, handsets: handsets.New(deps.Pool), kick: make(chan struct{}, 1), sent: sent}
}

// Kick wakes Run after messages were marked. It never blocks.
func (a *Answers) Kick() {
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// Run sends answers until ctx ends.
func (a *Answers) Run(ctx context.Context) error {
	for failing := false; ; {
		err := a.Send(ctx)
		pause := interval
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if pause = errorPause; !failing {
				a.Log.WarnContext(ctx, "answers to keywords cannot be sent; trying again", "event", "answers_failed", "error", err)
			}
		case failing:
			a.Log.InfoContext(ctx, "answers to keywords are sent again", "event", "answers_resumed")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-a.kick:
		case <-time.After(pause):
		}
	}
}

// Send sends the answers that are due. After a failure it leaves the others of that company for later.
func (a *Answers) Send(ctx context.Context) error {
	failed := map[int64]error{} // by company
	for after := int64(0); ; {
		due, err := a.handsets.DueAnswers(ctx, after, listed)
		if err != nil {
			return errors.Join(append(slices.Collect(maps.Values(failed)), err)...)
		}
		a.sendAll(ctx, due, failed)
		if len(failed) >= mostFailures || len(due) < listed || ctx.Err() != nil {
			return errors.Join(slices.Collect(maps.Values(failed))...)
		}
		after = due[len(due)-1].ID
	}
}

// sendAll sends answers, and adds to failed what failed.
func (a *Answers) sendAll(ctx context.Context, due []handsets.DueAnswer, failed map[int64]error) {
	next := make(chan *handsets.DueAnswer)
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var senders sync.WaitGroup
	for range atOnce {
		senders.Go(func() {
			for d := range next {
				err := a.answer(context.WithoutCancel(ctx), d)
				if err == nil {
					continue
				}
				mu.Lock()
				failed[d.CompanyID] = fmt.Errorf("answering message %d from a handset: %w", d.ID, err)
				if len(failed) >= mostFailures {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	for i := range due {
		mu.Lock()
		failing := failed[due[i].CompanyID] != nil
		mu.Unlock()
		if failing {
			continue
		}
		select {
		case next <- &due[i]:
			continue
		case <-stop.Done():
		}
		break
	}
	close(next)
	senders.Wait()
}

// answer sends one answer, or notes why it is not sent.
func (a *Answers) answer(ctx context.Context, d *handsets.DueAnswer) error {
	if postgres.Now().Sub(d.At) > lateAfter {
		return a.drop(ctx, d, handsets.AnswerLate)
	}
	number, ok := sms.FromCarrier(d.From)
	route, p, err := a.read(ctx, d)
	switch {
	case err != nil:
		return err
	case !ok || route == nil:
		return a.drop(ctx, d, handsets.AnswerNoRoute)
	}
	sender := SenderOf(p.Company.Senders, route, d.To)
	_, err = a.Intake.Send(intake.WithChannel(ctx, messages.Keyword), p, intake.Single{Number: number,
		Sender: sender, Message: route.Answer,
		First: func(ctx context.Context, tx pgx.Tx, id ulid.ULID) (verdict, err error) {
			return take(ctx, tx, d, number, id, sender, route.Sender)
		}})
	refusal, refused := errors.AsType[sms.Refusal](err)
	switch {
	case refused:
		return a.drop(ctx, d, handsets.AnswerState(refusal.Reason))
	case errors.Is(err, errTaken):
		return nil
	case err == nil:
		a.sent.WithLabelValues(string(handsets.AnswerSent)).Inc()
	}
	return err
}

// read returns the route of an answer, nil if it is gone, and the company's owner, in whose name it is sent.
func (a *Answers) read(ctx context.Context, d *handsets.DueAnswer) (*handsets.Route, *accounts.Principal, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	routes, err := a.handsets.RoutesFrom(ctx, d.To)
	if err != nil {
		return nil, nil, err
	}
	route := routes.Find(d.Carrier, d.Keyword)
	if route == nil || route.Keyword != d.Keyword || route.CompanyID != d.CompanyID || route.Answer == "" {
		return nil, nil, nil
	}
	company, err := a.Companies.CompanyByID(ctx, d.CompanyID)
	if err != nil {
		return nil, nil, err
	}
	p, err := a.Holders.PrincipalOf(ctx, company.OwnerID)
	if err == nil && (p.Company == nil || p.Company.ID != d.CompanyID) {
		err = fmt.Errorf("the owner of company %d is not one of its people", d.CompanyID)
	}
	return route, p, err
}

// errTaken means that an answer is not due any more, or another process is about to send it.
var errTaken = errors.New("the answer is taken")

// take marks an answer as sent, unless its number has opted out of one of the senders: the answer's, and the one that
// STOP means under the route.
func take(ctx context.Context, tx pgx.Tx, d *handsets.DueAnswer, number sms.Number, id ulid.ULID, senders ...string) (
	verdict, err error) {
	taken, err := handsets.TakeAnswer(ctx, tx, d.ID, id)
	switch {
	case err != nil:
		return nil, err
	case !taken:
		return errTaken, nil
	}
	var pairs []handsets.Pair
	for _, sender := range senders {
		pairs = append(pairs, handsets.Pair{CompanyID: d.CompanyID, Number: number, Sender: sender})
	}
	barred, err := handsets.Barred(ctx, tx, pairs)
	if len(barred) > 0 {
		return intake.RefuseOptedOut, err
	}
	return nil, err
}

// SenderOf returns the sender of a route's answers to messages to an address: the company's approved sender with the
// name of the address, so that people can answer again, or else the route's; "" if it has neither.
func SenderOf(senders map[string]accounts.Sender, route *handsets.Route, address string) string {
	found := ""
	for name, s := range senders {
		if s.Approved && handsets.Address(name) == handsets.Address(address) && (found == "" || name < found) {
			found = name
		}
	}
	if found == "" {
		found = route.Sender
	}
	return found
}

// drop notes why an answer is not sent. The owner gets a mail about the first one of a day that lacks credits.
func (a *Answers) drop(ctx context.Context, d *handsets.DueAnswer, why handsets.AnswerState) error {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	var dropped bool
	err := postgres.InTx(ctx, a.Pool, func(tx pgx.Tx) (err error) {
		store := a.handsets.In(tx)
		if dropped, err = store.DropAnswer(ctx, d.ID, why); err != nil || !dropped ||
			why != handsets.AnswerUnpaid {
			return err
		}
		// One at a time for each company, so that only one finds that it is the first.
		if _, err := billing.Lock(ctx, tx, []billing.Debit{{CompanyID: d.CompanyID, Amount: 1}}); err != nil {
			return err
		}
		before, err := store.UnpaidAnswers(ctx, d.CompanyID, d.ID, toldWithin)
		if err != nil || before {
			return err
		}
		return letter.Write(ctx, tx, letter.Balance, sms.CompanyID(d.CompanyID), letter.BalanceValues{Unanswered: true})
	})
	if err == nil && dropped {
		a.sent.WithLabelValues(string(why)).Inc()
	}
	return err
}
