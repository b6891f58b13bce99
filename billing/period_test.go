package billing_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

// booked is a row of a ledger in a test.
type booked struct {
	kind   string
	amount int64
	at     time.Time
}

// books writes a company's ledger, with rows in the order of the list.
func books(t testing.TB, pool *pgxpool.Pool, company int64, rows []booked) {
	t.Helper()
	kinds, amounts, after, at := make([]string, len(rows)), make([]int64, len(rows)), make([]int64, len(rows)),
		make([]time.Time, len(rows))
	balance := int64(0)
	for i, r := range rows {
		balance += r.amount
		kinds[i], amounts[i], after[i], at[i] = r.kind, r.amount, balance, r.at
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO ledger (company_id, kind, amount, balance_after, ref, created_at)
		SELECT $1, kind, amount, after, CASE WHEN kind IN ('send', 'refund') THEN gen_random_uuid() END, at
		FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::timestamptz[]) WITH ORDINALITY u(kind, amount, after, at, n)
		ORDER BY n`, company, kinds, amounts, after, at); err != nil {
		t.Fatal(err)
	}
}

// price sets a price, or a tariff, whatever its day.
func price(t testing.TB, pool *pgxpool.Pool, company int64, from string, centimes any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), `INSERT INTO credit_prices (company_id, valid_from, centimes) VALUES ($1, $2, $3)`,
		company, from, centimes); err != nil {
		t.Fatal(err)
	}
}

func month(year int, m time.Month) time.Time { return time.Date(year, m, 1, 0, 0, 0, 0, sms.Burundi) }

// TestMonthsAreExact: sends, refunds, purchases and corrections at random moments around midnight in Burundi at the end
// of months, booked in another order than they began, make exact months at the right prices.
func TestMonthsAreExact(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	company := int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		company++
		borders := []time.Time{month(2026, time.January), month(2026, time.February), month(2026, time.March),
			month(2026, time.April)}
		var rows []booked
		balance, at, newest := int64(0), borders[0].Add(-time.Hour), time.Time{}
		for range rapid.IntRange(0, 60).Draw(rt, "rows") {
			border := rapid.SampledFrom(borders).Draw(rt, "border")
			step := time.Duration(rapid.IntRange(-3_000, 3_000).Draw(rt, "milliseconds")) * time.Millisecond
			if rapid.Bool().Draw(rt, "at the border") && border.Add(step).After(at.Add(-20*time.Second)) {
				at = border.Add(step)
			} else {
				at = at.Add(time.Duration(rapid.Int64Range(-20_000, 9*24*3600*1000).Draw(rt, "later")) * time.Millisecond)
			}
			if first := newest.Add(-59 * time.Second); at.Before(first) { // no transaction takes a minute
				at = first
			}
			if at.After(newest) {
				newest = at
			}
			r := booked{rapid.SampledFrom([]string{"adjustment", "correction", "send", "refund"}).Draw(rt, "kind"),
				rapid.Int64Range(1, 1000).Draw(rt, "amount"), at}
			if r.kind == "send" || r.kind == "correction" && rapid.Bool().Draw(rt, "taken") {
				if r.amount = -min(r.amount, balance); r.amount == 0 {
					continue
				}
			}
			balance += r.amount
			rows = append(rows, r)
		}
		books(t, pool, company, rows)
		var prices billing.Prices
		for day := range 3 {
			if rapid.Bool().Draw(rt, "a new price") {
				from, c := borders[day].AddDate(0, 0, rapid.IntRange(0, 27).Draw(rt, "day")),
					billing.Centimes(rapid.IntRange(0, 5000).Draw(rt, "price"))
				price(t, pool, company, from.Format(time.DateOnly), c)
				prices.Own = append(prices.Own, billing.Rate{From: from, Price: &c})
			}
		}
		closing := int64(0)
		for i, from := range slices.Concat([]time.Time{month(2025, time.December)}, borders) {
			to := from.AddDate(0, 1, 0)
			p, err := l.Summary(t.Context(), sms.CompanyID(company), from, to)
			if err != nil {
				rt.Fatal(err)
			}
			want := map[string]int64{}
			opening, end, value, unknown := int64(0), int64(0), new(big.Int), false
			for _, r := range rows {
				if r.at.Before(from) {
					opening += r.amount
				}
				if r.at.Before(to) {
					end += r.amount
				}
				if r.at.Before(from) || !r.at.Before(to) {
					continue
				}
				want[r.kind] += r.amount
				if r.kind == "send" {
					if c := prices.At(r.at); c == nil {
						unknown = true
					} else {
						value.Add(value, new(big.Int).Mul(big.NewInt(int64(*c)), big.NewInt(-r.amount)))
					}
				}
			}
			purchases, _ := p.Sum(func(p *billing.Part) int64 { return p.Purchases })
			corrections, _ := p.Sum(func(p *billing.Part) int64 { return p.Corrections })
			refunds, _ := p.Sum(func(p *billing.Part) int64 { return p.Refunds })
			usage, amount := p.Sum(func(p *billing.Part) int64 { return p.Usage })
			got := fmt.Sprint(p.Opening, p.Closing, purchases, corrections, refunds, usage)
			if expected := fmt.Sprint(opening, end, want["adjustment"], want["correction"], want["refund"],
				-want["send"]); got != expected {
				rt.Fatalf("month %d: %s, want %s of %v", i, got, expected, rows)
			}
			if p.Opening != closing && i > 0 || p.Opening+purchases+corrections+refunds-usage != p.Closing || p.Open {
				rt.Fatalf("%+v after a closing balance of %d", p, closing)
			}
			if closing = p.Closing; (amount == nil) != unknown || !unknown && amount.String() != francs(value) {
				rt.Fatalf("%v francs, want %v, unknown: %t", amount, francs(value), unknown)
			}
		}
	})
}

// francs is an amount of centimes in francs.
func francs(centimes *big.Int) string {
	text := new(big.Rat).SetFrac(centimes, big.NewInt(100)).FloatString(2)
	if text[len(text)-3:] == ".00" {
		return text[:len(text)-3]
	}
	return text
}

// TestHugeAmounts: the largest balance at the highest price is exact, in JSON too.
func TestHugeAmounts(t *testing.T) {
	pool := testenv.Pool(t)
	from := month(2026, time.March)
	books(t, pool, 1, []booked{{"adjustment", math.MaxInt64, from}, {"send", -math.MaxInt64, from.AddDate(0, 0, 14)}})
	price(t, pool, 0, "2026-03-01", billing.MaxPrice-1)
	p, err := billing.New(pool).Summary(t.Context(), 1, from, from.AddDate(0, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	usage, amount := p.Sum(func(p *billing.Part) int64 { return p.Usage })
	text, err := json.Marshal(map[string]any{"amount": amount, "price": p.Parts[0].Price})
	if want := `{"amount":9223371944621055438452241.93,"price":999999.99}`; usage != math.MaxInt64 ||
		string(text) != want || err != nil {
		t.Errorf("%d, %s, want %s, %v", usage, text, want, err)
	}
}

// TestPrices: a company's own price goes before the default, a month that is over keeps its prices, and each rate has a
// bound.
func TestPrices(t *testing.T) {
	pool := testenv.Pool(t)
	l := billing.New(pool)
	set := func(company sms.CompanyID, from time.Time, c *billing.Centimes) (before *billing.Rate, err error) {
		err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
			before, err = billing.SetPrice(t.Context(), tx, company, billing.Rate{From: from, Price: c})
			return err
		})
		return before, err
	}
	this := billing.MonthOf(postgres.Now())
	next := this.AddDate(0, 1, 0)
	for _, s := range []struct {
		company sms.CompanyID
		from    time.Time
		price   *billing.Centimes
	}{{0, this, new(billing.Centimes(1000))}, {7, this, new(billing.Centimes(1250))}, {7, next, nil},
		{0, next.AddDate(0, 0, 10), new(billing.Centimes(900))}} {
		if before, err := set(s.company, s.from, s.price); err != nil || before != nil {
			t.Fatal(before, err)
		}
	}
	if before, err := set(7, this, new(billing.Centimes(1300))); err != nil || *before.Price != 1250 {
		t.Error(before, err)
	}
	p, err := l.PricesOf(t.Context(), 7)
	other, otherErr := l.PricesOf(t.Context(), 8)
	if err != nil || otherErr != nil {
		t.Fatal(err, otherErr)
	}
	for _, at := range []struct {
		day        time.Time
		own, other string
	}{{this.AddDate(0, 0, -1), "", ""}, {this, "13", "10"}, {next.Add(-time.Second), "13", "10"}, {next, "10", "10"},
		{next.AddDate(0, 0, 10), "9", "9"}} {
		text := func(p billing.Prices) string { return p.At(at.day).Amount(1).String() }
		if text(p) != at.own || text(other) != at.other {
			t.Errorf("%s: %q and %q, want %q and %q", at.day, text(p), text(other), at.own, at.other)
		}
	}
	if _, err := set(7, this.AddDate(0, 0, -1), nil); !errors.Is(err, billing.ErrPastMonth) {
		t.Error(err)
	}
	if _, err := set(7, this.AddDate(3, 0, 0), nil); !errors.Is(err, billing.ErrFarAway) {
		t.Error(err)
	}
	for i := range 500 {
		price(t, pool, 9, this.AddDate(0, 0, i).Format(time.DateOnly), 1)
	}
	if _, err := set(9, this.AddDate(0, 0, 500), nil); !errors.Is(err, billing.ErrManyRates) {
		t.Error(err)
	}
}

// TestParsePrice has what is a price.
func TestParsePrice(t *testing.T) {
	for text, want := range map[string]string{"12": "12", "12.5": "12.50", " 12,05 ": "12.05", "0": "0", "0.01": "0.01",
		"1000000":    "1000000",
		"1000000.01": "", "": "", "-1": "", "1e3": "", "1.234": "", "1,2.3": "", ".5": "", "5.": "", "12 000": "", "٣": "",
		"99999999": ""} {
		if c, err := billing.ParsePrice(text); (err == nil) != (want != "") || err == nil && c.String() != want {
			t.Errorf("%q: %s, %v", text, c, err)
		}
	}
}
