package billing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Rate is a price from a day on, until the next rate.
type Rate struct {
	From  time.Time // midnight in Burundi
	Price *Centimes // of a credit or a segment; nil: none from then on
}

// Rates are prices over time, the oldest first. Before the first there is none.
type Rates []Rate

// At returns the price at a moment, nil if there is none.
func (r Rates) At(at time.Time) (price *Centimes) {
	for _, rate := range r {
		if rate.From.After(at) {
			break
		}
		price = rate.Price
	}
	return price
}

// Prices are what a credit costs a company: its own rate, and where it has none the default.
type Prices struct{ Own, Default Rates }

// At returns the price at a moment, nil if there is none.
func (p Prices) At(at time.Time) *Centimes {
	if own := p.Own.At(at); own != nil {
		return own
	}
	return p.Default.At(at)
}

// cuts returns from, the days after it and before to on which the price changes, and to.
func (p Prices) cuts(from, to time.Time) []time.Time {
	cuts := []time.Time{from}
	days := slices.SortedFunc(func(yield func(time.Time) bool) {
		for _, rate := range slices.Concat(p.Own, p.Default) {
			if !yield(rate.From) {
				return
			}
		}
	}, time.Time.Compare)
	for _, day := range days {
		before := cuts[len(cuts)-1]
		if day.After(from) && day.Before(to) && !same(p.At(day), p.At(before)) {
			cuts = append(cuts, day)
		}
	}
	return append(cuts, to)
}

// Span returns the part of a period, without its credits, in which the price is that of a moment.
func (p Prices) Span(at, from, to time.Time) (part Part) {
	cuts := p.cuts(from, to)
	for i := range len(cuts) - 1 {
		if part = (Part{From: cuts[i], To: cuts[i+1], Price: p.At(cuts[i])}); at.Before(part.To) {
			break
		}
	}
	return part
}

// AllPrices are the prices of all companies.
type AllPrices map[sms.CompanyID]Rates // of company 0: the default

// Of returns the prices of a company.
func (a AllPrices) Of(company sms.CompanyID) Prices { return Prices{Own: a[company], Default: a[0]} }

// Cuts returns from, the days after it and before to on which a price changes, and to.
func (a AllPrices) Cuts(from, to time.Time) []time.Time {
	cuts := []time.Time{from, to}
	for company := range a {
		cuts = append(cuts, a.Of(company).cuts(from, to)...)
	}
	slices.SortFunc(cuts, time.Time.Compare)
	return slices.CompactFunc(cuts, time.Time.Equal)
}

func same(a, b *Centimes) bool { return a == b || a != nil && b != nil && *a == *b }

// How far from today a rate may begin, and how many a company or carrier may have.
const (
	rateAhead = 2 * 366 * 24 * time.Hour
	rateBack  = 3 * 366 * 24 * time.Hour
	maxRates  = 500
)

// Errors of setting a rate.
var (
	// ErrPastMonth means that the price of a month that is over was to be changed.
	ErrPastMonth = errors.New("the month is over: a price begins in this month or later")
	// ErrFarAway means that a rate would begin more than two years ahead or three years back.
	ErrFarAway = errors.New("a price begins at most two years ahead, and a tariff at most three years back")
	// ErrManyRates means that the company or carrier has 500 rates.
	ErrManyRates = errors.New("there are 500 prices already")
)

// DayOf returns the midnight in Burundi at which the day of t began.
func DayOf(t time.Time) time.Time {
	t = t.In(sms.Burundi)
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, sms.Burundi)
}

// MonthOf returns the midnight in Burundi at which the month of t began.
func MonthOf(t time.Time) time.Time {
	t = t.In(sms.Burundi)
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, sms.Burundi)
}

// rateTable has the statements of a table of rates by company or carrier.
type rateTable[K any] struct{ read, write string }

var (
	prices = rateTable[int64]{
		read: `SELECT valid_from, centimes FROM credit_prices WHERE company_id = $1 ORDER BY valid_from`,
		write: `INSERT INTO credit_prices (company_id, valid_from, centimes) VALUES ($1, $2, $3)
			ON CONFLICT (company_id, valid_from) DO UPDATE SET centimes = EXCLUDED.centimes`,
	}
	tariffs = rateTable[string]{
		read: `SELECT valid_from, centimes FROM carrier_tariffs WHERE carrier = $1 ORDER BY valid_from`,
		write: `INSERT INTO carrier_tariffs (carrier, valid_from, centimes) VALUES ($1, $2, $3)
			ON CONFLICT (carrier, valid_from) DO UPDATE SET centimes = EXCLUDED.centimes`,
	}
)

// rates reads the rates of a company or carrier.
func (t rateTable[K]) rates(ctx context.Context, db postgres.Querier, of K) (Rates, error) {
	rates, err := postgres.All(ctx, db, fmt.Sprintf("reading the prices of %v", of),
		func(row pgx.CollectableRow) (r Rate, err error) {
			err = row.Scan(&r.From, &r.Price)
			r.From = midnight(r.From)
			return r, err
		}, t.read, of)
	return rates, err
}

// set writes a rate and returns what was valid from that day on: nil if there was no rate of just that day.
func (t rateTable[K]) set(ctx context.Context, tx pgx.Tx, of K, to Rate) (before *Rate, err error) {
	rates, err := t.rates(ctx, tx, of)
	if err != nil {
		return nil, err
	}
	for i := range rates {
		if rates[i].From.Equal(to.From) {
			before = &rates[i]
		}
	}
	if before == nil && len(rates) >= maxRates {
		return nil, ErrManyRates
	}
	if _, err := tx.Exec(ctx, t.write, of, to.From.Format(time.DateOnly), to.Price); err != nil {
		return nil, fmt.Errorf("writing the price of %v: %w", of, err)
	}
	return before, nil
}

// SetPrice sets what a credit costs a company (0: companies without a price of their own) from a day on, and returns
// the rate of that day before, nil if there was none. What was valid in a month that is over is never changed: the
// error is [ErrPastMonth]. The other errors are [ErrFarAway], [ErrManyRates] and those of Postgres.
func SetPrice(ctx context.Context, tx pgx.Tx, company sms.CompanyID, to Rate) (before *Rate, err error) {
	if to.From.Before(MonthOf(postgres.Now())) {
		return nil, ErrPastMonth
	}
	if to.From.After(postgres.Now().Add(rateAhead)) {
		return nil, ErrFarAway
	}
	return prices.set(ctx, tx, int64(company), to)
}

// SetTariff sets what a carrier takes for a segment from a day on, and returns the rate of that day before, nil if
// there was none. The day may be past, because a carrier's letter may come late: nothing is charged by a tariff. The
// errors are [ErrFarAway], [ErrManyRates] and those of Postgres.
func SetTariff(ctx context.Context, tx pgx.Tx, carrier string, to Rate) (before *Rate, err error) {
	if now := postgres.Now(); to.From.After(now.Add(rateAhead)) || to.From.Before(now.Add(-rateBack)) {
		return nil, ErrFarAway
	}
	return tariffs.set(ctx, tx, carrier, to)
}

// PricesOf returns what a credit costs a company. Company 0 has the default alone.
func (l *Ledger) PricesOf(ctx context.Context, company sms.CompanyID) (p Prices, err error) {
	return PricesOf(ctx, l.pool, company)
}

// PricesOf is [Ledger.PricesOf] in the caller's transaction.
func PricesOf(ctx context.Context, db postgres.Querier, company sms.CompanyID) (p Prices, err error) {
	if p.Default, err = prices.rates(ctx, db, 0); err == nil && company != 0 {
		p.Own, err = prices.rates(ctx, db, int64(company))
	}
	return p, err
}

// AllPrices returns the prices of all companies.
func (l *Ledger) AllPrices(ctx context.Context) (AllPrices, error) {
	all := make(AllPrices)
	return all, eachRate(ctx, l.pool, func(company int64, r Rate) {
		all[sms.CompanyID(company)] = append(all[sms.CompanyID(company)], r)
	},
		`SELECT company_id, valid_from, centimes FROM credit_prices ORDER BY company_id, valid_from`)
}

// Tariffs returns the tariffs of all carriers that have some.
func (l *Ledger) Tariffs(ctx context.Context) (map[string]Rates, error) {
	all := make(map[string]Rates)
	return all, eachRate(ctx, l.pool, func(carrier string, r Rate) { all[carrier] = append(all[carrier], r) },
		`SELECT carrier, valid_from, centimes FROM carrier_tariffs ORDER BY carrier, valid_from`)
}

func eachRate[K any](ctx context.Context, db postgres.Querier, do func(K, Rate), query string) error {
	var of K
	var r Rate
	return postgres.Each(ctx, db, "reading all prices", []any{&of, &r.From, &r.Price}, func() error {
		do(of, Rate{midnight(r.From), r.Price})
		r.Price = nil // a new one for the next row
		return nil
	}, query)
}

// midnight returns the midnight in Burundi that begins the day of a date.
func midnight(date time.Time) time.Time {
	return time.Date(date.Year(), date.Month(), date.Day(), 0, 0, 0, 0, sms.Burundi)
}
