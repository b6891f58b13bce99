package stories

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

func soon(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }

// comes lets the time of all that is scheduled come, so far from now.
func (w *world) comes(d time.Duration) (at time.Time) {
	w.t.Helper()
	at = time.Now().Add(d)
	ask[int](w, `WITH due AS (UPDATE scheduled SET due_at = $1 RETURNING 1) SELECT count(*) FROM due`, at)
	return at
}

// scheduled counts the messages that wait for their time.
func (w *world) scheduled() int { return ask[int](w, `SELECT count(*) FROM scheduled`) }

// released waits until none waits for its time any more.
func (w *world) released() {
	w.t.Helper()
	w.dwindles("scheduled", `SELECT count(*) FROM scheduled`, onTheWayWithin)
}

// Very many messages wait for the same moment, in no list that is read meanwhile, nor in Redis, which forgets everything. When the
// moment comes they go out at once, each once, and single messages go before them.
func TestManyScheduledForOneMoment(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	const many, later = 20_000, 20
	w := play(t, scene{
		carriers: []carrier{{sim: carriersim.Options{NoFates: true}, links: 2, link: tree{"window": 200}}},
		gateways: []tree{{}, {"roles": "dispatcher"}}, ownRedis: true,
	})
	shop, bank, client := w.silentCompany("Isoko", int64(many)), w.company("Ibanki", 1000), w.redisClient()
	shop.bulk(many, tree{"send_at": soon(20 * 24 * time.Hour)})
	for i := range later {
		var sent answer
		bank.requests(http.MethodPost, "/v1/sms", tree{"phone_number": w.number(), "sender": bank.sender, "message": "Impanuro " + word(),
			"send_at": soon(20 * 24 * time.Hour), "client_reference": fmt.Sprintf("impanuro-%d", i)}, &sent)
	}
	w.flushes(client)
	if got, n, out := shop.credits(), w.scheduled(), ask[int](w, `SELECT count(*) FROM outbox`); got != 0 || n != many+later || out != 0 || w.lumitel.Stats().Submits != 0 {
		t.Errorf("before the moment %d credits are left, %d of %d are scheduled, %d on their way, %d at the carrier", got, n, many+later, out, w.lumitel.Stats().Submits)
	}
	w.audited()

	at := w.comes(2*time.Second + time.Duration(many)*50*time.Microsecond) // moving it takes a while as well
	w.flushes(client)
	<-time.After(time.Until(at))
	w.eventually(10*time.Second, "the first is submitted", func() bool { return w.lumitel.Stats().Submits > 0 }) // a second, on an idle machine
	first := time.Since(at)
	w.eventually(time.Minute, "the scheduled single messages are sent", func() bool {
		return ask[int](w, `SELECT count(*) FROM messages WHERE company_id = $1 AND status = 1`, bank.id) == later
	})
	singles, began := time.Since(at), time.Now()
	w.becomes(bank.sends(w.number(), "Kode yawe ni "+word()).ID, "sent")
	single := time.Since(began)
	w.released()
	w.drains()
	w.settles(settledWithin)
	if got, sent := w.lumitel.Stats(), ask[int](w, `SELECT count(*) FROM messages WHERE status = 1`); int(got.Submits) != many+later+1 || got.Duplicates != 0 || sent != many+later+1 {
		t.Errorf("the carrier got %d, %d of them twice, and %d are sent; want %d", got.Submits, got.Duplicates, sent, many+later+1)
	}
	w.eventually(finalWithin, "all that was released is counted, and the customer hears of all", func() bool {
		return int(w.gateways[0].metric("intumwa_scheduled_released_total")+w.gateways[1].metric("intumwa_scheduled_released_total")) == many+later && len(bank.webhooks()) == later+1
	})
	t.Logf("%d messages for one moment: the first was submitted %v after it, scheduled single ones were sent after %v, all after %v; a single message meanwhile took %v",
		many, first.Round(time.Millisecond), singles.Round(time.Millisecond), time.Since(at).Round(time.Millisecond), single.Round(time.Millisecond))
}

// A customer cancels batches at the moment at which they are due, from several connections at once, while an operator does the
// same. Each message is either sent or cancelled and paid back, once; what was cancelled before its moment is not sent at all.
func TestCancelRacesWithTheDueMoment(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	w := play(t, scene{
		carriers: []carrier{{sim: carriersim.Options{NoFates: true}, links: 2, link: tree{"tps": 500, "window": 50}}},
		gateways: []tree{{}, {"roles": "dispatcher"}},
	})
	shop := w.company("Isoko", 10_000)
	schedules := func() string {
		ids, _ := shop.bulk(500, tree{"send_at": soon(time.Hour)})
		return ids[0]
	}
	var early cancelled
	shop.requests(http.MethodDelete, "/v1/sms/batches/"+schedules(), nil, &early)
	w.paidBack()
	if early.Cancelled != 500 || early.Credits != 500 || shop.credits() != 10_000 {
		t.Errorf("before its moment %+v are cancelled, %d credits are there", early, shop.credits())
	}
	total := early.Cancelled
	const rounds, size = 6, 500
	for round := range rounds {
		w.drains()
		id := schedules()
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
					var s cancelled
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
			if err := w.admin(&s, "", "batch", "cancel", "--id", id, "--reason", "a mistake"); err != nil {
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
	for what, query := range map[string]string{
		"messages are cancelled":     `SELECT count(*) FROM messages WHERE failure_reason = 'cancelled'`,
		"messages have a refund":     `SELECT count(DISTINCT ref) FROM ledger WHERE kind = 'refund'`,
		"refunds are in the ledger":  `SELECT count(*) FROM ledger WHERE kind = 'refund'`,
		"are cancelled, not carried": `SELECT count(*) FROM messages m WHERE failure_reason = 'cancelled' AND NOT EXISTS (SELECT FROM segments s WHERE s.message_id = m.id)`,
	} {
		w.eventually(finalWithin, fmt.Sprintf("%d %s", total, what), func() bool { return ask[int64](w, query) == total })
	}
	if got := int64(w.lumitel.Stats().Submits); got != all-total || shop.credits() != 10_000-all+total {
		t.Errorf("the carrier got %d, want %d; %d credits are left, want %d", got, all-total, shop.credits(), 10_000-all+total)
	}
	w.eventually(finalWithin, "the customer hears of all", func() bool { return int64(len(shop.webhooks())) >= all })
}

// The gateway is down when the moment comes, and is killed again while it releases what was due. All goes out afterwards, but
// what has expired meanwhile, which is paid back.
func TestDownAtTheDueMoment(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	const many = 3000
	w := play(t, scene{carriers: []carrier{steady()}})
	shop := w.company("Isoko", 2*many)
	shop.bulk(many, tree{"send_at": soon(time.Hour)})
	var short answer
	shop.requests(http.MethodPost, "/v1/sms", tree{"phone_number": w.number(), "sender": shop.sender, "message": "Impanuro " + word(),
		"send_at": soon(time.Hour), "expire_at": soon(2 * time.Hour)}, &short)
	w.gateway.kill()
	// Both times come while it is down.
	ask[int](w, `WITH short AS (UPDATE scheduled SET expires_at = $1 WHERE message_id = (SELECT max(message_id) FROM scheduled) RETURNING message_id),
		sweep AS (UPDATE deadlines SET expires_at = $1 FROM short WHERE deadlines.message_id = short.message_id)
		SELECT count(*) FROM short`, time.Now())
	w.comes(0)
	w.gateway.start()
	const kills = 10
	for range kills {
		left := w.scheduled()
		w.comesTrue(onTheWayWithin, func() bool { n := w.scheduled(); return n < left || n == 0 })
		w.gateway.kill()
		w.gateway.start()
	}
	w.released()
	w.drains()
	w.settles(settledWithin)
	if m := w.message(short.ID); m.Status != "failed" || m.FailureReason != "expired" {
		t.Errorf("what expired meanwhile is %s (%s)", m.Status, m.FailureReason)
	}
	w.paidBack()
	sent, twice := ask[int](w, `SELECT count(*) FROM messages WHERE status = 1`), int(w.lumitel.Stats().Duplicates)
	if sent != many || twice > window*(kills+1) || shop.credits() != many {
		t.Errorf("%d are sent, want %d; %d came twice, at most %d may; %d credits are left", sent, many, twice, window*(kills+1), shop.credits())
	}
}
