package ebms

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intumwa/internal/postgres"
)

const (
	every        = 2 * time.Second
	measureEvery = 15 * time.Second
	attemptTime  = 45 * time.Second // of one invoice, with every repetition
	claimTime    = time.Minute      // longer than attemptTime; then another process tries
	storeTime    = 5 * time.Second
	firstPause   = 10 * time.Second // after the first failure, doubling
	longestPause = 5 * time.Minute
)

// Options configure a [Reporter].
type Options struct {
	Client *Client
	// Read returns an invoice by its name, without its identifier. An [*Unsendable] error says why the eBMS would refuse
	// it.
	Read    func(ctx context.Context, name string) (*Invoice, error)
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Reporter reports queued invoices, in any number of processes.
type Reporter struct {
	pool    *pgxpool.Pool
	opts    Options
	results *prometheus.CounterVec
	pending *prometheus.GaugeVec
	oldest  atomic.Int64 // Unix time of the oldest invoice that the OBR does not have; 0: none
	now     func() time.Time
}

// NewReporter returns a reporter that does not run yet.
func NewReporter(pool *pgxpool.Pool, o Options) *Reporter {
	r := &Reporter{pool: pool, opts: o, now: postgres.Now}
	f := promauto.With(o.Metrics)
	r.results = f.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_ebms_attempts_total",
		Help: "Invoices reported to the eBMS, by result."}, []string{"result"})
	for _, result := range []string{"received", "duplicate", "refused", "fault", "away"} {
		r.results.WithLabelValues(result)
	}
	r.pending = f.NewGaugeVec(prometheus.GaugeOpts{Name: "intumwa_ebms_unreported",
		Help: "Invoices that the tax office does not have; refused ones wait for a person."}, []string{"state"})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "intumwa_ebms_unreported_oldest_age_seconds",
		Help: "Age of the oldest invoice that the tax office does not have; 0 without one."}, func() float64 {
		oldest := r.oldest.Load()
		if oldest == 0 {
			return 0
		}
		return max(0, r.now().Sub(time.Unix(oldest, 0)).Seconds())
	})
	return r
}

// Run reports until ctx ends.
func (r *Reporter) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	defer r.opts.Client.End()
	measured := time.Time{}
	for {
		if time.Since(measured) >= measureEvery {
			measured = time.Now()
			if err := r.measure(ctx); err != nil && ctx.Err() == nil {
				r.opts.Log.Error("unreported invoices could not be counted; trying again", "event", "ebms_not_counted", "error",
					err)
			}
		}
		n, err := r.batch(ctx)
		if err != nil && ctx.Err() == nil {
			r.opts.Log.Error("invoices could not be reported to the eBMS; trying again", "event", "ebms_not_reported", "error",
				err)
		}
		if n > 0 {
			measured = time.Time{}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *Reporter) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	c, err := Count(ctx, r.pool)
	if err != nil {
		return err
	}
	r.pending.WithLabelValues(string(Waiting)).Set(float64(c.Waiting))
	r.pending.WithLabelValues(string(Refusal)).Set(float64(c.Refused))
	if c.Oldest.IsZero() {
		r.oldest.Store(0)
	} else {
		r.oldest.Store(c.Oldest.Unix())
	}
	return nil
}

// batch reports what is due, after one login, until the eBMS is away. It returns the number of attempts.
func (r *Reporter) batch(ctx context.Context) (n int, err error) {
	var session *Session
	for ctx.Err() == nil {
		c, err := take(ctx, r.pool, claimTime)
		if err != nil || c == nil {
			return n, err
		}
		n++
		var proof Receipt
		if session, proof, err = r.attempt(ctx, session, c); ctx.Err() != nil {
			ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
			defer cancel()
			if err == nil {
				return n, received(ended, r.pool, c, proof)
			}
			return n, giveBack(ended, r.pool, c)
		}
		if on, err := r.record(ctx, c, proof, err); err != nil || !on {
			return n, err
		}
	}
	return n, nil
}

// Unsendable means that an invoice would be refused.
type Unsendable struct{ Cause error }

func (e *Unsendable) Error() string { return "not sent: " + e.Cause.Error() }

// attempt reports one invoice.
func (r *Reporter) attempt(ctx context.Context, s *Session, c *claim) (*Session, Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	v, err := r.opts.Read(ctx, c.Name)
	if err != nil {
		return s, Receipt{}, err
	}
	v.Identifier = c.Identifier
	if c.WithoutNIF {
		v.Customer.NIF = ""
	}
	if err := v.Check(); err != nil {
		return s, Receipt{}, &Unsendable{err}
	}
	if s == nil {
		if s, err = r.opts.Client.Login(ctx); err != nil {
			return nil, Receipt{}, err
		}
	}
	proof, err := s.Add(ctx, v)
	if !errors.Is(err, ErrDuplicate) {
		return s, proof, err
	}
	r.results.WithLabelValues("duplicate").Inc()
	words := err.Error()
	if proof, err = s.Find(ctx, v); errors.Is(err, ErrUnknown) {
		err = &Refused{words + "; but not with the identifier " + v.Identifier +
			": another program or a lost database has reported another invoice with this number"}
	}
	return s, proof, err
}

// record stores the result of an attempt. on is false while the eBMS is away.
func (r *Reporter) record(ctx context.Context, c *claim, proof Receipt, err error) (on bool, _ error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	pause := min(firstPause<<min(c.Tries-1, 10), longestPause)
	result := func(name string) { r.results.WithLabelValues(name).Inc() }
	no, isRefused := errors.AsType[*Refused](err)
	unfit, isUnsendable := errors.AsType[*Unsendable](err)
	fault, isFault := errors.AsType[*Fault](err)
	away, isAway := errors.AsType[*Away](err)
	switch {
	case err == nil:
		result("received")
		return true, received(ctx, r.pool, c, proof)
	case isRefused, isUnsendable:
		result("refused")
		words := ""
		if isRefused {
			words = no.Words
		} else {
			words = unfit.Error()
		}
		r.opts.Log.Warn("the tax office refuses an invoice: admin invoice pending", "event", "ebms_refused", "invoice",
			c.Name,
			"words", words)
		return true, refused(ctx, r.pool, c, bounded(words))
	case isFault:
		result("fault")
		r.opts.Log.Warn("the eBMS does not take an invoice now; trying again", "event", "ebms_fault", "invoice", c.Name,
			"words", fault.Words, "pause", pause)
		return true, putOff(ctx, r.pool, c, pause, bounded(fault.Words), true)
	case isAway:
		result("away")
		r.opts.Log.Warn("the eBMS cannot be used; trying again", "event", "ebms_away", "invoice", c.Name, "error",
			away.Error(), "pause", pause)
		return false, putOff(ctx, r.pool, c, pause, bounded(away.Error()), false)
	}
	return false, errors.Join(fmt.Errorf("reading %s: %w", c.Name, err), giveBack(ctx, r.pool, c))
}

// bounded returns a text of the OBR as the columns take it; their reply is kept whole.
func bounded(words string) string {
	words = postgres.Text(words)
	if all := []rune(words); len(all) > 1000 {
		return string(all[:999]) + "…"
	}
	return words
}
