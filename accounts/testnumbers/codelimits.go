package testnumbers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intumwa/sms"
)

// CodeRequest asks for a one-time code to a number.
type CodeRequest struct {
	User    int64
	Company int64 // 0: none
	Number  sms.Number
	Network string // the client's network: an address, or the /64 of an IPv6 address

	// Own: an operator approved the company and gave it credits, so its codes do not count as free ones.
	Own bool
}

// Limits on codes within 24 hours. Anyone can create accounts and companies, and each code costs the operator a
// message.
const (
	codesOfCompany   = 50
	freeCodesNetwork = 20 // to companies without credits, by one client's network
	freeCodesBlock   = 20 // to 10,000 neighbouring numbers, which may earn somebody money
	blockPrefix      = len("+2577912")
)

// CodeLimitError means that too many codes were sent within 24 hours: of the company, or free ones.
type CodeLimitError struct {
	After time.Duration // until the next one is possible
	Free  bool          // the limit is one of free codes
}

// Error returns the text for the user.
func (e *CodeLimitError) Error() string { return "too many one-time codes were sent today" }

// ForUser marks the text.
func (e *CodeLimitError) ForUser() {}

type codeMetrics struct {
	free    prometheus.Counter
	refused *prometheus.CounterVec
}

func newCodeMetrics(most int, registerer prometheus.Registerer) codeMetrics {
	to := promauto.With(registerer)
	to.NewGauge(prometheus.GaugeOpts{Name: "intumwa_free_codes_max", Help: "Limit on free codes a day; 0: none."}).Set(
		float64(most))
	m := codeMetrics{to.NewCounter(prometheus.CounterOpts{Name: "intumwa_free_codes_total",
		Help: "One-time codes sent for companies without credits."}),
		to.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_codes_refused_total",
			Help: "One-time codes refused by a limit of a day."}, []string{"limit"})}
	for _, limit := range codeLimits {
		m.refused.WithLabelValues(limit)
	}
	return m
}

// codeLimits are the names of the limits, in the order of mayCostCode's query.
var codeLimits = []string{"company", "installation", "network", "block"}

// mayCostCode limits the codes that the operator pays for. Free ones wait for each other's commits, so that concurrent
// requests do not exceed the limit.
func (a *Store) mayCostCode(ctx context.Context, tx pgx.Tx, r CodeRequest) error {
	if !r.Own {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('free codes', 0))`); err != nil {
			return err
		}
	}
	// For each limit n, the age of the n-th latest code.
	ages := make([]*float64, len(codeLimits))
	err := tx.QueryRow(ctx, `
		with recent as (
			select c.*, u.company_id from test_number_codes c join users u on u.id = c.user_id
			where c.created_at > now() - interval '1 day' and (c.free or u.company_id = $1))
		select extract(epoch from now() - (array_agg(created_at
			order by created_at desc) filter (where company_id = $1))[$4])::float8,
		       extract(epoch from now() - (array_agg(created_at order by created_at desc) filter (where free))[$5])::float8,
		       extract(epoch from now() - (array_agg(created_at order by created_at desc) filter (where free
		and network = $2))[$6])::float8,
		       extract(epoch from now() - (array_agg(created_at order by created_at desc) filter (where free
		and left(phone_number, $8) = left($3, $8)))[$7])::float8
		from recent`, r.Company, a.networkHash(r.Network), string(r.Number), codesOfCompany, a.opts.FreeCodes,
		freeCodesNetwork, freeCodesBlock, blockPrefix).
		Scan(&ages[0], &ages[1], &ages[2], &ages[3])
	if err != nil {
		return err
	}
	for i, age := range ages {
		if free := i > 0; age != nil && !(free && r.Own) {
			a.codes.refused.WithLabelValues(codeLimits[i]).Inc()
			after, _ := errors.AsType[*TooSoonError](tooSoon((24 * time.Hour).Seconds() - *age))
			return &CodeLimitError{after.After, free}
		}
	}
	return nil
}

// networkHash identifies a client's network for a day without storing it.
func (a *Store) networkHash(network string) []byte {
	mac := hmac.New(sha256.New, a.opts.Key)
	mac.Write([]byte("network\x00" + network))
	return mac.Sum(nil)[:8]
}
