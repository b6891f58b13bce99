package stories

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// quality is a row of `admin report quality`.
type quality struct {
	Carrier    string `json:"carrier"`
	CostCenter string `json:"cost_center"`
	Kind       string `json:"kind"`
	Accepted   int64  `json:"accepted"`
	Sent       int64  `json:"sent"`
	Failed     int64  `json:"failed"`
	Segments   int64  `json:"segments"`
	Credits    int64  `json:"credits"`
	Reasons    []struct {
		Reason   string `json:"reason"`
		Messages int64  `json:"messages"`
	} `json:"reasons"`
}

// told are the sums of all reports, by carrier, as the commands print them.
type told struct {
	Accepted, Sent, Failed, Reasons, Segments map[string]int64
	ByLabel                                   map[string]int64 // accepted, by kind and cost centre
	Submitted                                 map[string]int64 // segments that the carrier accepted
}

// reports asks for all reports from a day on.
func (w *world) reports(from time.Time) told {
	w.t.Helper()
	days := []string{"--from", from.Format(time.DateOnly), "--to", time.Now().Add(2 * time.Hour).Format(time.DateOnly)}
	is := told{map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{},
		map[string]int64{}, map[string]int64{}}
	var rows []quality
	w.orders(&rows, "", append([]string{"report", "quality", "--by", "carrier,kind,cost_center"}, days...)...)
	for _, r := range rows {
		is.Accepted[r.Carrier] += r.Accepted
		is.Sent[r.Carrier] += r.Sent
		is.Failed[r.Carrier] += r.Failed
		is.Segments[r.Carrier] += r.Segments
		is.ByLabel[r.Kind+" "+r.CostCenter] += r.Accepted
		for _, reason := range r.Reasons {
			is.Reasons[r.Carrier] += reason.Messages
		}
	}
	var invoices []struct {
		Carrier  string `json:"carrier"`
		Accepted int64  `json:"accepted"`
	}
	w.orders(&invoices, "", append([]string{"report", "invoice"}, days...)...)
	for _, i := range invoices {
		is.Submitted[i.Carrier] += i.Accepted
	}
	return is
}

// mixed sends n messages of every kind to two carriers, of which the second fails one in five, and returns what it
// sent.
func (c *company) mixed(n int) (sent told) {
	c.w.t.Helper()
	sent = told{map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{},
		map[string]int64{}, map[string]int64{}}
	failing := []int{1, 14, 15, 2} // UNDELIV, EXPIRED, REJECTD, and refused for good
	long := strings.Repeat("Umuti uri ku kigo ndangamagara. ", 6)
	const batch = 100
	type item struct {
		Number  string `json:"phone_number"`
		Message string `json:"message"`
	}
	var requests []func() answer
	for i := 0; i < n; i += batch {
		items := make([]item, batch)
		kind, label := "batch", ""
		if i/batch%4 == 3 {
			kind = "single"
		}
		if i/batch%2 == 1 {
			label = "CC" + strconv.Itoa(i/batch%3)
		}
		for k := range items {
			carrier, fate := c.w.carriers[k%2], 0
			if k%10 == 1 { // one in five of the second carrier
				fate = failing[(i+k)/10%len(failing)]
			}
			text, segments := fmt.Sprintf("Ubutumwa %d", i+k), int64(1)
			if k%7 == 0 {
				text, segments = long, 2
			}
			items[k] = item{fmt.Sprintf("+257%s%04d%02d", carrier.prefix, (i+k)%10_000, fate), text}
			sent.Accepted[carrier.Name()]++
			sent.Segments[carrier.Name()] += segments
			sent.ByLabel[kind+" "+label]++
			if fate == 0 {
				sent.Sent[carrier.Name()]++
			} else {
				sent.Failed[carrier.Name()]++
				sent.Reasons[carrier.Name()]++
			}
		}
		if kind == "batch" {
			body, _ := json.Marshal(map[string]any{"sender": c.sender, "messages": items, "cost_center": label})
			requests = append(requests, func() answer {
				return c.calls(c.w.gateway, "POST", "/v1/sms/bulk", body, "Content-Type", "application/json")
			})
			continue
		}
		for _, one := range items {
			body, _ := json.Marshal(map[string]any{"sender": c.sender, "phone_number": one.Number, "message": one.Message,
				"cost_center": label})
			requests = append(requests, func() answer {
				return c.calls(c.w.gateway, "POST", "/v1/sms", body, "Content-Type", "application/json")
			})
		}
	}
	var senders sync.WaitGroup
	next := make(chan func() answer)
	for range 16 {
		senders.Go(func() {
			for request := range next {
				if a := request(); a.err != nil || a.status != http.StatusOK {
					c.w.t.Errorf("a send was answered %d %s %v, want 200", a.status, a.body, a.err)
				}
			}
		})
	}
	for _, request := range requests {
		next <- request
	}
	close(next)
	senders.Wait()
	return sent
}

// provesReports sends n messages, and compares all reports with what was sent, with the ledger and with the carriers'
// own counts, before and after a purge.
func provesReports(t *testing.T, n int) {
	busy(t)
	quick := carriersim.Options{ReceiptDelay: 10 * time.Millisecond}
	w := play(t, scene{carriers: []carrier{{sim: quick, link: tree{"window": 500}},
		{sim: quick, link: tree{"window": 500}}},
		config: tree{"retention": tree{"messages": "720h"}, "api": tree{"rate_limit_per_minute": 1_000_000}}})
	c := w.silentCompany("Raporo", 1_000_000)
	sent := c.mixed(n)
	w.settles(5 * time.Minute)
	today := time.Now().UTC().Add(2 * time.Hour)
	compare := func(when string, from time.Time) {
		t.Helper()
		is := w.reports(from)
		for name, pair := range map[string][2]map[string]int64{"accepted": {is.Accepted, sent.Accepted},
			"sent": {is.Sent, sent.Sent}, "failed": {is.Failed, sent.Failed},
			"reasons": {is.Reasons, sent.Reasons}, "segments": {is.Segments, sent.Segments},
			"labels": {is.ByLabel, sent.ByLabel}} {
			for key, want := range pair[1] {
				if pair[0][key] != want {
					t.Errorf("%s, %s of %s: %d, want %d", when, name, key, pair[0][key], want)
				}
			}
		}
		for _, carrier := range w.carriers {
			if want := int64(carrier.Stats().Accepted); is.Submitted[carrier.Name()] != want {
				t.Errorf("%s: %s accepted %d segments and the report has %d", when, carrier.Name(), want,
					is.Submitted[carrier.Name()])
			}
		}
		var money struct {
			Opening, Purchases, Usage, Refunds, Corrections, Closing int64
		}
		w.orders(&money, "", "report", "money", "--company", c.number(), "--from",
			today.AddDate(0, 0, -1).Format(time.DateOnly), "--to", today.AddDate(0, 0, 1).Format(time.DateOnly))
		var used, refunded, credits int64
		if err := w.pool.QueryRow(t.Context(), `SELECT -sum(amount) FILTER (WHERE kind = 'send'),
			coalesce(sum(amount) FILTER (WHERE kind = 'refund'), 0), sum(amount) FROM ledger WHERE company_id = $1`, c.id).
			Scan(&used, &refunded, &credits); err != nil {
			t.Fatal(err)
		}
		if abs(money.Usage) != used || money.Refunds != refunded || money.Closing != credits || money.Opening != 0 ||
			money.Purchases != 1_000_000 {
			t.Errorf("%s: %+v, the ledger has used %d, refunded %d, left %d", when, money, used, refunded, credits)
		}
		if want := sent.Segments["lumitel"] + sent.Segments["leo"]; used != want {
			t.Errorf("%s: %d credits were charged for %d segments", when, used, want)
		}
		w.audited()
	}
	compare("before the purge", today)

	w.gateway.terminate()
	for _, statement := range []string{
		// of 100,000 messages a whole range of ids is counted for the last time, as after 40 days
		`UPDATE tally_chunks SET changed_at = changed_at - interval '40 days', counted_at = '-infinity'`,
		`UPDATE segments SET submitted_at = submitted_at - interval '40 days', receipt_at = receipt_at - interval '40 days'`,
		`UPDATE messages SET created_at = created_at - interval '40 days', sent_at = sent_at - interval '40 days',
			failed_at = failed_at - interval '40 days'`,
		`UPDATE batches SET created_at = created_at - interval '40 days'`,
	} {
		if _, err := w.pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	w.gateway.start() // the purge runs soon after a start
	w.dwindles("not purged", `SELECT count(*) FROM messages`, 5*time.Minute)
	compare("after the purge", today.AddDate(0, 0, -45))
}

func abs(n int64) int64 { return max(n, -n) }

// TestReports: reports agree with what was sent, with the ledger and with the carriers.
func TestReports(t *testing.T) {
	t.Parallel()
	provesReports(t, 1200) // each kind with each cost centre
}

// TestReportsOfMany is TestReports with 100,000 messages.
func TestReportsOfMany(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	provesReports(t, 100_000)
}
