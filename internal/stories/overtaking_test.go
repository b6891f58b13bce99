package stories

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// TestVerificationsOvertakeCampaigns: while a campaign fills a link of 100 segments a second, half of the
// verifications, in the long suites 99 %, are submitted within two seconds of their request, and the campaign gives up
// as many segments as they take, no more.
func TestVerificationsOvertakeCampaigns(t *testing.T) {
	t.Parallel()
	const rate, lasts, every = 100, 6 * time.Second, 200 * time.Millisecond
	w := play(t, scene{carriers: []carrier{{link: tree{"tps": rate}, sim: carriersim.Options{NoFates: true}}}})
	shop := w.company("Isoko", 1_000_000)
	campaign := rate * int(2*lasts.Seconds())
	shop.bulk(campaign, nil)
	w.eventually(settledWithin, "the campaign fills the link", func() bool { return w.lumitel.Stats().Accepted > 3*rate })

	began := time.Now()
	asked := map[string]time.Time{}
	var all sync.WaitGroup
	for time.Since(began) < lasts {
		number := w.number()
		asked[number] = time.Now()
		all.Go(func() {
			body := fmt.Sprintf(`{"phone_number":%q,"sender":"Isoko","locale":"en"}`, number)
			if a := shop.calls(w.gateway, http.MethodPost, "/v1/verifications", []byte(body)); a.status != http.StatusOK {
				t.Errorf("%d %s %v", a.status, a.body, a.err)
			}
		})
		time.Sleep(every) // the load's rhythm
	}
	all.Wait()
	ended := time.Now()
	var took []time.Duration
	w.eventually(finalWithin, "all are submitted", func() bool {
		took = took[:0]
		for _, submit := range w.lumitel.accepted() {
			if at, one := asked["+"+submit.Destination.Addr]; one && strings.HasPrefix(submit.Text, "Your code") {
				took = append(took, submit.At.Sub(at))
			}
		}
		return len(took) == len(asked)
	})
	slices.Sort(took)
	others := 0
	for _, submit := range w.lumitel.accepted() {
		if !strings.HasPrefix(submit.Text, "Your code") && submit.At.After(began) && submit.At.Before(ended) {
			others++
		}
	}
	p99 := took[len(took)*99/100]
	share := float64(len(took)) / float64(len(took)+others)
	t.Logf("%d verifications beside a campaign of %d: p50 %v, p99 %v, slowest %v; they took %.1f %% of %.1f "+
		"segments a second", len(took), campaign,
		took[len(took)/2].Round(time.Millisecond), p99.Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond),
		100*share, float64(len(took)+others)/ended.Sub(began).Seconds())
	// Behind the campaign, half of them would wait for more than five seconds. The slowest of a few says how busy the
	// machine is.
	if p50 := took[len(took)/2]; p50 > 4*time.Second || testenv.Thorough() && p99 > 2*time.Second {
		t.Errorf("half of them take more than %v, one of a hundred more than %v", p50, p99)
	}
	var cancelled struct {
		Cancelled int `json:"cancelled"`
	}
	w.orders(&cancelled, "", "company", "cancel", "--id", shop.number())
	w.settles(settledWithin)
}
