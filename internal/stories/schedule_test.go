package stories

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/tools/carriersim"
)

// requests makes a request of a customer and reads its answer, which must be 200. A customer who is told to wait does.
func (c *company) requests(method, path string, body, result any) {
	c.w.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); c.triesRequest(method, path, body, result) == http.StatusTooManyRequests; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) { // a window of the rate is one minute
			c.w.t.Fatalf("%s %s: told to wait for longer than the rate's window", method, path)
		}
	}
}

func (c *company) triesRequest(method, path string, body, result any) (status int) {
	c.w.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.w.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(c.w.t.Context(), method, "http://"+c.w.gateway.api+path, bytes.NewReader(text))
	if err != nil {
		c.w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body == nil {
		request.Body = http.NoBody
	} else {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.w.client.Do(request)
	if err != nil {
		c.w.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusTooManyRequests {
		return response.StatusCode
	}
	var answer json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
		c.w.t.Fatalf("%s %s was answered %d %s, %v", method, path, response.StatusCode, answer, err)
	}
	if err := json.Unmarshal(answer, result); err != nil {
		c.w.t.Fatalf("%s: %v", answer, err)
	}
	return response.StatusCode
}

// schedules sends n messages in batches, with more fields, and returns their ids.
func (c *company) schedules(n int, more map[string]any) (ids []string) {
	c.w.t.Helper()
	mark := word()
	for from := 0; from < n; from += 500 {
		list := make([]map[string]any, min(500, n-from))
		for i := range list {
			list[i] = map[string]any{"phone_number": c.w.subscriber(from + i), "message": "Kugura kuwambere " + mark + " " + strconv.Itoa(from+i)}
		}
		body := map[string]any{"sender": c.sender, "messages": list}
		for name, value := range more {
			body[name] = value
		}
		var sent struct {
			ID string `json:"batch_id"`
		}
		c.requests(http.MethodPost, "/v1/sms/bulk", body, &sent)
		ids = append(ids, sent.ID)
	}
	return ids
}

func soon(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }

// comes lets the time of all that is scheduled come, so far from now.
func (w *world) comes(d time.Duration) (at time.Time) {
	w.t.Helper()
	at = time.Now().Add(d)
	ask[int](w, `WITH due AS (UPDATE scheduled SET due_at = $1 RETURNING 1) SELECT count(*) FROM due`, at)
	return at
}

// scheduledMany is how many messages are scheduled for one moment: as many as said under INTUMWA_SCHEDULED.
func scheduledMany(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("INTUMWA_SCHEDULED")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// idles says what so long a time costs in which nothing comes and nothing is due.
func (w *world) idles(d time.Duration) string {
	w.t.Helper()
	look := func() (figures [5]float64) {
		stats := ask[[]float64](w, `SELECT ARRAY[xact_commit, tup_returned, blks_hit + blks_read, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')]::float8[]
			FROM pg_stat_database WHERE datname = current_database()`)
		copy(figures[:], stats)
		for _, g := range w.gateways {
			figures[4] += g.metric("process_cpu_seconds_total")
		}
		return figures
	}
	before := look()
	<-time.After(d)
	after := look()
	return fmt.Sprintf("%s of idleness: %.0f transactions, %.0f rows read, %.0f pages looked at, %.0f kB of log, %.2f s of the gateways' processors",
		d, after[0]-before[0], after[1]-before[1], after[2]-before[2], (after[3]-before[3])/1024, after[4]-before[4])
}

// Very many messages wait for the same moment. They are paid for, and stand in no list that anybody reads, nor in Redis,
// which forgets everything meanwhile. When the moment comes they go out at once, each once, and single messages go before them.
func TestManyScheduledForOneMoment(t *testing.T) {
	t.Parallel()
	busy(t)
	many := scheduledMany(t, 20_000)
	w := play(t, scene{
		carriers: []carrier{{sim: carriersim.Options{NoFates: true}, links: 2, link: tree{"window": 200}}},
		gateways: []tree{{}, {"roles": "dispatcher"}}, ownRedis: true,
	})
	shop, bank := w.silentCompany("Isoko", int64(many)), w.company("Ibanki", 1000)
	ids := shop.schedules(many, map[string]any{"send_at": soon(20 * 24 * time.Hour)})
	const later = 20
	for i := range later {
		var sent answer
		bank.requests(http.MethodPost, "/v1/sms", map[string]any{"phone_number": w.number(), "sender": bank.sender, "message": "Impanuro " + word(),
			"send_at": soon(20 * 24 * time.Hour), "client_reference": fmt.Sprintf("impanuro-%d", i)}, &sent)
	}
	if got := shop.credits(); got != 0 {
		t.Errorf("%d credits are left: it is paid for when it is accepted", got)
	}
	options, err := redis.ParseURL(w.redis)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if n := ask[int](w, `SELECT count(*) FROM scheduled`); n != many+later {
		t.Errorf("%d are scheduled, want %d", n, many+later)
	}
	if n := ask[int](w, `SELECT count(*) FROM outbox`); n != 0 || w.lumitel.Stats().Submits != 0 {
		t.Errorf("%d are on their way before their time, %d at the carrier", n, w.lumitel.Stats().Submits)
	}
	var shown struct {
		SendAt  *time.Time `json:"send_at"`
		Waiting *struct {
			DueAt time.Time `json:"due_at"`
		} `json:"waiting"`
	}
	w.orders(&shown, "", "message", "show", "--id", "1")
	if shown.SendAt == nil || shown.Waiting == nil || !shown.Waiting.DueAt.Equal(*shown.SendAt) {
		t.Errorf("an operator sees %+v", shown)
	}
	w.audited()
	if os.Getenv("INTUMWA_SCHEDULED") != "" {
		t.Log(w.idles(time.Minute))
	}

	at := w.comes(2*time.Second + time.Duration(many)*50*time.Microsecond) // moving it takes a while as well
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Until(at))
	w.eventually(time.Minute, "the first is submitted", func() bool { return w.lumitel.Stats().Submits > 0 })
	first := time.Since(at)
	w.eventually(time.Minute, "the scheduled single messages are sent", func() bool {
		return ask[int](w, `SELECT count(*) FROM messages WHERE company_id = $1 AND status = 1`, bank.id) == later
	})
	scheduled := time.Since(at)
	began := time.Now()
	w.becomes(bank.sends(w.number(), "Kode yawe ni "+word()).ID, "sent")
	single := time.Since(began)
	w.dwindles("scheduled", `SELECT count(*) FROM scheduled`, onTheWayWithin)
	released := time.Since(at)
	if first > 10*time.Second { // a second, on a machine that does nothing else
		t.Errorf("the first was submitted %v after its moment", first)
	}
	w.drains()
	w.settles(settledWithin)
	carried := time.Since(at)
	if got := w.lumitel.Stats(); int(got.Submits) != many+later+1 || got.Duplicates != 0 {
		t.Errorf("the carrier got %d, %d of them twice; want %d", got.Submits, got.Duplicates, many+later+1)
	}
	if n := ask[int](w, `SELECT count(*) FROM messages WHERE status = 1`); n != many+later+1 {
		t.Errorf("%d are sent", n)
	}
	counted := func() int {
		return int(w.gateways[0].metric("intumwa_scheduled_released_total") + w.gateways[1].metric("intumwa_scheduled_released_total"))
	}
	w.eventually(finalWithin, "all that was released is counted", func() bool { return counted() >= many+later })
	if got := counted(); got != many+later {
		t.Errorf("%d were released", got)
	}
	var page struct {
		Data []struct {
			Reference string `json:"client_reference"`
			Status    string `json:"status"`
		} `json:"data"`
	}
	bank.requests(http.MethodGet, "/v1/sms?client_reference=impanuro-7", nil, &page)
	if len(page.Data) != 1 || page.Data[0].Reference != "impanuro-7" || page.Data[0].Status != "sent" {
		t.Errorf("the reference finds %+v", page)
	}
	w.eventually(finalWithin, "the customer hears of all", func() bool { return len(told(bank)) == later+1 })
	named := map[string]bool{}
	for _, call := range bank.webhooks() {
		var body struct {
			Data struct {
				Reference *string `json:"client_reference"`
			} `json:"data"`
		}
		if err := json.Unmarshal(call.body, &body); err != nil {
			t.Fatal(err)
		}
		if reference := body.Data.Reference; reference != nil {
			named[*reference] = true
		}
	}
	if len(named) != later {
		t.Errorf("webhooks name %d messages, want %d: those that were given a name", len(named), later)
	}
	w.audited()
	t.Logf("%d messages in %d batches for one moment: the first was submitted %v after it, scheduled single ones were sent after %v, all were released after %v and carried after %v; "+
		"a single message meanwhile took %v", many, len(ids), first.Round(time.Millisecond), scheduled.Round(time.Millisecond), released.Round(time.Millisecond), carried.Round(time.Millisecond), single.Round(time.Millisecond))
}

// A customer cancels batches at the moment at which they are due, from several connections at once, while an operator does the
// same. Each message is either sent or cancelled and paid back, once; what was cancelled before its moment is not sent at all.
func TestCancelRacesWithTheDueMoment(t *testing.T) {
	t.Parallel()
	w := play(t, scene{
		carriers: []carrier{{sim: carriersim.Options{NoFates: true}, links: 2, link: tree{"tps": 500, "window": 50}}},
		gateways: []tree{{}, {"roles": "dispatcher"}},
	})
	shop := w.company("Isoko", 10_000)
	type stopped struct {
		Cancelled int64 `json:"cancelled"`
		Credits   int64 `json:"credits_returned"`
	}
	var total int64
	early := shop.schedules(500, map[string]any{"send_at": soon(time.Hour)})[0]
	var first stopped
	shop.requests(http.MethodDelete, "/v1/sms/batches/"+early, nil, &first)
	w.paidBack()
	if first != (stopped{500, 500}) || shop.credits() != 10_000 {
		t.Errorf("before its moment %+v are cancelled, %d credits are there", first, shop.credits())
	}
	total += first.Cancelled
	const rounds, size = 6, 500
	for round := range rounds {
		w.drains()
		id := shop.schedules(size, map[string]any{"send_at": soon(time.Hour)})[0]
		before := w.lumitel.Stats().Submits
		at := w.comes(300 * time.Millisecond)
		var callers sync.WaitGroup
		var sum atomic.Int64
		<-time.After(time.Until(at.Add(time.Duration(round-1) * 5 * time.Millisecond)))
		if round >= rounds/2 { // or later, when a part is under way
			w.eventually(finalWithin, "some are submitted", func() bool { return w.lumitel.Stats().Submits > before })
		}
		for range 3 {
			callers.Go(func() {
				for range 4 {
					var s stopped
					shop.requests(http.MethodDelete, "/v1/sms/batches/"+id, nil, &s)
					if s.Cancelled != s.Credits {
						t.Errorf("%+v: each has one segment", s)
					}
					sum.Add(s.Cancelled)
				}
			})
		}
		callers.Go(func() {
			var s cancelled
			if err := w.admin(&s, "", "batch", "cancel", id, "--reason", "a mistake"); err != nil {
				t.Error(err)
			}
			sum.Add(s.Cancelled)
		})
		callers.Wait()
		total += sum.Load()
		t.Logf("%d of %d were cancelled in time", sum.Load(), size)
		if n := sum.Load(); round >= rounds/2 && n == size {
			t.Errorf("all were cancelled, and some were submitted before")
		}
	}
	w.drains()
	w.settles(finalWithin)
	all := int64(500 + rounds*size)
	if n := ask[int64](w, `SELECT count(*) FROM messages WHERE failure_reason = 'cancelled'`); n != total {
		t.Errorf("%d messages are cancelled, the answers said %d", n, total)
	}
	if n := ask[int](w, `SELECT count(*) FROM messages m WHERE failure_reason = 'cancelled' AND EXISTS (SELECT FROM segments s WHERE s.message_id = m.id)`); n != 0 {
		t.Errorf("%d messages are cancelled and carried", n)
	}
	if got := int64(w.lumitel.Stats().Submits); got != all-total {
		t.Errorf("the carrier got %d, want %d", got, all-total)
	}
	w.eventually(finalWithin, "every credit is back", func() bool { return shop.credits() == 10_000-all+total })
	if n := ask[int64](w, `SELECT count(DISTINCT ref) FROM ledger WHERE kind = 'refund'`); n != total || ask[int64](w, `SELECT count(*) FROM ledger WHERE kind = 'refund'`) != total {
		t.Errorf("%d messages are paid back, want %d, each once", n, total)
	}
	w.eventually(finalWithin, "the customer hears of all", func() bool { return int64(len(shop.webhooks())) >= all })
	w.audited()
}

// The gateway is down when the moment comes, and is killed again while it releases what was due. All goes out afterwards, but
// what has expired meanwhile, which is paid back.
func TestDownAtTheDueMoment(t *testing.T) {
	t.Parallel()
	busy(t)
	const many = 5000
	down := steady()
	w := play(t, scene{carriers: []carrier{down}})
	shop := w.company("Isoko", 2*many)
	shop.schedules(many, map[string]any{"send_at": soon(time.Hour)})
	var short answer
	shop.requests(http.MethodPost, "/v1/sms", map[string]any{"phone_number": w.number(), "sender": shop.sender, "message": "Impanuro " + word(),
		"send_at": soon(time.Hour), "expire_at": soon(2 * time.Hour)}, &short)
	w.gateway.kill()
	// Both times come while it is down.
	ask[int](w, `WITH short AS (UPDATE scheduled SET expires_at = $1 WHERE message_id = (SELECT max(message_id) FROM scheduled) RETURNING message_id),
		sweep AS (UPDATE deadlines SET expires_at = $1 FROM short WHERE deadlines.message_id = short.message_id)
		SELECT count(*) FROM short`, time.Now())
	w.comes(0)
	w.gateway.start()
	kills := chaos(10)
	for range kills {
		left := ask[int](w, `SELECT count(*) FROM scheduled`)
		w.comesTrue(onTheWayWithin, func() bool { n := ask[int](w, `SELECT count(*) FROM scheduled`); return n < left || n == 0 })
		w.gateway.kill()
		w.gateway.start()
	}
	w.dwindles("scheduled", `SELECT count(*) FROM scheduled`, onTheWayWithin)
	w.drains()
	w.settles(settledWithin)
	if m := w.message(short.ID); m.Status != "failed" || m.FailureReason != "expired" {
		t.Errorf("what expired meanwhile is %s (%s)", m.Status, m.FailureReason)
	}
	if n := ask[int](w, `SELECT count(*) FROM messages WHERE status = 1`); n != many {
		t.Errorf("%d are sent, want %d", n, many)
	}
	if got := w.lumitel.Stats(); int(got.Duplicates) > window*(kills+1) {
		t.Errorf("%d came twice, at most %d may", got.Duplicates, window*(kills+1))
	}
	w.paidBack()
	if got := shop.credits(); got != many {
		t.Errorf("%d credits, want %d", got, many)
	}
	w.audited()
}

// A company has quiet hours of its own: its batches wait, for as long as it has them, and single messages do not.
func TestQuietHoursOfACompany(t *testing.T) {
	t.Parallel()
	w := play(t, scene{})
	shop := w.company("Isoko", 1000)
	clock := func(d time.Duration) string { return time.Now().UTC().Add(2*time.Hour + d).Format("15:04") }
	var set struct {
		Quiet string `json:"quiet_hours"`
	}
	hours := clock(-time.Hour) + "-" + clock(2*time.Hour)
	w.orders(&set, "", "company", "set", "--id", shop.number(), "--quiet-hours", hours)
	if set.Quiet != hours {
		t.Errorf("it has %q", set.Quiet)
	}
	if err := w.admin(&set, "", "company", "set", "--id", shop.number(), "--quiet-hours", "9-17"); err == nil {
		t.Error("nonsense is taken for quiet hours")
	}
	waits := func(id string) bool {
		var batch struct {
			SendAt *time.Time `json:"send_at"`
		}
		shop.requests(http.MethodGet, "/v1/sms/batches/"+id, nil, &batch)
		return batch.SendAt != nil && batch.SendAt.After(time.Now().Add(90*time.Minute))
	}
	w.eventually(finalWithin, "a batch waits", func() bool { return waits(shop.campaign(2)) })
	held := ask[int](w, `SELECT count(*) FROM scheduled`)
	w.becomes(shop.sends(w.number(), "Kode yawe ni "+word()).ID, "sent")
	w.orders(&set, "", "company", "set", "--id", shop.number(), "--quiet-hours", "none")
	w.eventually(finalWithin, "a batch does not wait", func() bool { return !waits(shop.campaign(2)) })
	if n := ask[int](w, `SELECT count(*) FROM scheduled`); n < held {
		t.Errorf("%d of %d wait still", n, held)
	}
	w.orders(&set, "", "company", "set", "--id", shop.number(), "--quiet-hours", "default")
	var stopped cancelled
	w.orders(&stopped, "", "company", "cancel", "--id", shop.number(), "--reason", "the end")
	w.settles(finalWithin)
}
