package binds_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/testenv"
	"intumwa/smpp"
	"intumwa/smppserver/binds"
)

func TestMain(m *testing.M) { testenv.Main(m) }

type town struct {
	*testing.T
	*binds.Store
	pool *pgxpool.Pool
}

// newTown returns a database with the keys 1 and 2.
func newTown(t *testing.T) *town {
	t.Helper()
	pool := testenv.Pool(t)
	w := &town{t, binds.New(pool), pool}
	w.exec(`INSERT INTO users (email, name, password_hash) VALUES ('a@example.com', 'a', '')`)
	w.exec(`INSERT INTO api_tokens (user_id, name, secret_hash, scopes, system_id, sessions, "window", tps)
		SELECT 1, 'k', decode(repeat('00', 32), 'hex'), '{smpp}', 'k' || n, 4, 10, 20 FROM generate_series(1, 2) n`)
	return w
}

func (w *town) exec(statement string, args ...any) {
	w.Helper()
	testenv.Exec(w, w.pool, statement, args...)
}

func (w *town) open(account int64, process, mode string) int64 {
	w.Helper()
	id, err := w.Open(context.Background(), binds.Bind{Account: account, Process: process, Peer: "192.0.2.1:4000",
		Mode: mode}, 4)
	if err != nil {
		w.Fatal(err)
	}
	w.exec(`UPDATE smpp_binds SET seen_at = now() + interval '1 minute' WHERE id = $1`, id) // nobody renews it
	return id
}

// receipt stores a receipt for a message that a bind submitted.
func (w *town) receipt(account, bind int64) {
	w.Helper()
	sent := true
	if err := pgx.BeginFunc(context.Background(), w.pool, func(tx pgx.Tx) error {
		return binds.Add(context.Background(), tx, []binds.Delivery{
			{Account: account, Bind: bind, Number: "+25779000001", Address: "ACME", Sent: &sent, SubmittedAt: time.Now(),
				At: time.Now()}})
	}); err != nil {
		w.Fatal(err)
	}
}

func (w *town) take(process string, room map[int64]int, held ...int64) (ids []int64) {
	w.Helper()
	taken, err := w.Take(context.Background(), process, room, held)
	if err != nil {
		w.Fatal(err)
	}
	for _, d := range taken {
		ids = append(ids, d.ID)
	}
	return ids
}

func (w *town) want(what string, got []int64, want int) {
	w.Helper()
	if len(got) != want {
		w.Errorf("%s: %d deliveries, want %d", what, len(got), want)
	}
}

// TestOpen: of many binds at once, from two processes, a key gets as many as it may have. A bind that its process does
// not renew makes room.
func TestOpen(t *testing.T) {
	w := newTown(t)
	var opened, refused atomic.Int32
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			switch _, err := w.Open(context.Background(), binds.Bind{Account: 1, Process: fmt.Sprint("p", i%2), Peer: "x",
				Mode: binds.Transceiver}, 4); {
			case err == nil:
				opened.Add(1)
			case errors.Is(err, binds.ErrTooMany):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if opened.Load() != 4 || refused.Load() != 8 {
		t.Errorf("%d opened, %d refused", opened.Load(), refused.Load())
	}
	w.open(2, "p0", binds.Receiver) // another key has its own
	w.exec(`UPDATE smpp_binds SET seen_at = now() - interval '11 seconds' WHERE id = (SELECT min(id) FROM smpp_binds
		WHERE account = 1)`)
	w.open(1, "p1", binds.Transceiver)
}

// TestRenew: a process learns which binds must end, and its share of each key's binds.
func TestRenew(t *testing.T) {
	w := newTown(t)
	a, b, c := w.open(1, "p0", binds.Transceiver), w.open(1, "p0", binds.Transceiver), w.open(1, "p0", binds.Receiver)
	w.open(1, "p1", binds.Transmitter)
	if err := w.Close(t.Context(), []int64{b}); err != nil {
		t.Fatal(err)
	}
	if err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		n, err := binds.Unbind(t.Context(), tx, 1, c)
		if n != 1 {
			t.Errorf("%d binds are asked to end", n)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	counts := binds.Counts{Submitted: 5, Refused: map[string]int64{"ESME_RTHROTTLED": 2}, InFlight: 1}
	end, shares, err := w.Renew(t.Context(), "p0", map[int64]binds.Counts{a: counts, b: {}, c: {}})
	if err != nil || len(end) != 2 || shares[1] != (binds.Share{Own: 2, All: 3}) {
		t.Errorf("end %v, shares %v, %v", end, shares, err)
	}
	list, err := w.All(t.Context(), 0, 10)
	if err != nil || len(list) != 3 || list[0].Submitted != 5 || list[0].Refused["ESME_RTHROTTLED"] != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	for n, keys := range [][]int64{nil, {1}, {2}, {1, 2}} { // nil: no key, not all
		want := int64(3 * (n % 2))
		list, err := w.List(t.Context(), keys, 0, 10)
		counts, wrong := w.Count(t.Context(), keys)
		if int64(len(list)) != want || counts[1] != want || err != nil || wrong != nil {
			t.Errorf("keys %v: %d binds, counts %v, %v, %v", keys, len(list), counts, err, wrong)
		}
	}
}

// TestTake: a receipt goes to the process of the bind that submitted its message, if that one receives; else to any
// process with a bind of the key, and again after that process has died.
func TestTake(t *testing.T) {
	w := newTown(t)
	here, there, transmitter := w.open(1, "p0", binds.Transceiver), w.open(1, "p1", binds.Transceiver),
		w.open(1, "p1", binds.Transmitter)
	w.receipt(1, here)
	w.receipt(1, there)
	w.receipt(1, transmitter)
	w.receipt(1, 0) // its bind is over
	w.receipt(2, 0)
	w.want("beyond the room", w.take("p0", map[int64]int{1: 0}), 0)
	got := w.take("p0", map[int64]int{1: 10})
	w.want("own, transmitter's and over", got, 3)
	w.want("held", w.take("p0", map[int64]int{1: 10}, got...), 0)
	w.want("held, but one whose answer was lost", w.take("p0", map[int64]int{1: 10}, got[1:]...), 1)
	w.want("taken", w.take("p1", map[int64]int{1: 10}), 1)
	w.exec(`UPDATE smpp_binds SET seen_at = now() - interval '11 seconds' WHERE process = 'p1'`)
	w.want("of the dead process", w.take("p0", map[int64]int{1: 10}, got...), 1)
	if err := w.Settle(t.Context(), "p0", []binds.Outcome{{ID: got[0], Done: true}, {ID: got[1]},
		{ID: got[2], Again: time.Hour, Tried: true}}); err != nil {
		t.Fatal(err)
	}
	w.want("given back", w.take("p1", map[int64]int{1: 10}), 1)
	waiting, err := w.WaitingFor(t.Context(), []int64{1})
	if err != nil || waiting[1].Number != 3 {
		t.Errorf("%v waiting, %v", waiting, err)
	}
}

// TestSettleLate: an answer that comes after the delivery was given back ends it, unless another process has taken it.
func TestSettleLate(t *testing.T) {
	w := newTown(t)
	w.open(1, "p0", binds.Transceiver)
	w.open(1, "p1", binds.Transceiver)
	w.receipt(1, 0)
	w.receipt(1, 0)
	got := w.take("p0", map[int64]int{1: 10})
	if err := w.Settle(t.Context(), "p0", []binds.Outcome{{ID: got[0], Again: time.Hour, Tried: true},
		{ID: got[1]}}); err != nil {
		t.Fatal(err)
	}
	w.want("given back", w.take("p1", map[int64]int{1: 10}), 1)
	if err := w.Settle(t.Context(), "p0", []binds.Outcome{{ID: got[0], Done: true},
		{ID: got[1], Done: true}}); err != nil {
		t.Fatal(err)
	}
	waiting, err := w.WaitingFor(t.Context(), []int64{1})
	if err != nil || waiting[1].Number != 1 {
		t.Errorf("%v waiting, %v", waiting, err)
	}
}

// TestTakeFromFullBind: a bind that leaves a whole window unanswered does not keep its receipts from the key's other
// binds.
func TestTakeFromFullBind(t *testing.T) {
	w := newTown(t)
	w.open(1, "p0", binds.Transceiver)
	frozen := w.open(1, "p1", binds.Transceiver)
	w.receipt(1, frozen)
	w.want("with room", w.take("p0", map[int64]int{1: 10}), 0)
	if _, _, err := w.Renew(t.Context(), "p1", map[int64]binds.Counts{
		frozen: {Unanswered: smpp.DefaultDeliverWindow}}); err != nil {
		t.Fatal(err)
	}
	w.want("without room", w.take("p0", map[int64]int{1: 10}), 1)
}

// TestDropAtOnce: what another process is dropping is not dropped twice: as many stay as may wait.
func TestDropAtOnce(t *testing.T) {
	w := newTown(t)
	w.exec(`INSERT INTO smpp_deliveries (account, phone_number, address, at, body) SELECT 1, '+25779000001', 'ACME', now(),
		'x' FROM generate_series(1, 30)`)
	if err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `DELETE FROM smpp_deliveries WHERE id IN (SELECT id FROM smpp_deliveries
			ORDER BY due_at, id LIMIT 4)`)
		if err != nil {
			return err
		}
		_, excess, err := w.Drop(t.Context(), time.Hour, 25)
		if excess != 1 {
			t.Errorf("%d too many while another process drops 4 of 5", excess)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if waiting, err := w.Waiting(t.Context()); err != nil || waiting[1].Number != 25 {
		t.Errorf("%d wait, %v", waiting[1].Number, err)
	}
}

// TestDrop: old deliveries go, and the oldest of a key beyond its number.
func TestDrop(t *testing.T) {
	w := newTown(t)
	for range 5 {
		w.receipt(1, 0)
	}
	w.receipt(2, 0)
	w.exec(`UPDATE smpp_deliveries SET created_at = now() - interval '73 hours' WHERE id = 1`)
	old, excess, err := w.Drop(t.Context(), 72*time.Hour, 2)
	if err != nil || old != 1 || excess != 2 {
		t.Errorf("%d old, %d too many, %v", old, excess, err)
	}
	if n, err := binds.Erase(t.Context(), w.pool, []string{"+25779000001"}); err != nil || n != 3 {
		t.Errorf("%d erased, %v", n, err)
	}
}
