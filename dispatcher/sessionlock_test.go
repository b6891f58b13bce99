package dispatcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher"
	"intumwa/smpp/carriersim"
)

// sessionLockKey is the first key of the lock that says that a dispatcher lives.
const sessionLockKey = 0x64697370

// TestSessionLockOfDead: a dispatcher whose session is gone is dead at once, however
// long its silence may be; one whose session is there lives, as does one of a
// release that had none.
func TestSessionLockOfDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno, other := w.carrier(carriersim.Options{NoFates: true}), w.carrier(carriersim.Options{NoFates: true})
	living, err := pgx.Connect(t.Context(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = living.Close(context.Background()) }()
	if _, err := living.Exec(t.Context(), `SELECT pg_advisory_lock($1, 78)`, sessionLockKey); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO dispatchers (id, name, session) OVERRIDING SYSTEM VALUE
			VALUES (77, 'killed', true), (78, 'living', true), (79, 'old release', false);
		INSERT INTO links (name, carrier, owner) VALUES ('lumitel-1', 'lumitel', 77), ('leo-1', 'leo', 78), ('gone-1', 'gone', 79)`); err != nil {
		t.Fatal(err)
	}
	id := w.sendTo("00")
	if _, err := w.pool.Exec(t.Context(), `UPDATE outbox SET claimed_by = 77, epoch = 1, attempts = 1`); err != nil {
		t.Fatal(err)
	}
	w.startWith(dispatcher.Options{DeadAfter: time.Hour}, mno.mno(), named("leo", other))
	w.await("sent", 10*time.Second, id)
	if n := w.count(`SELECT count(*) FROM dispatchers WHERE id IN (78, 79)`); n != 2 {
		t.Errorf("%d of the two that live are on the list", n)
	}
	if n := w.count(`SELECT count(*) FROM links WHERE owner = 78 AND name = 'leo-1'`); n != 1 {
		t.Error("the link of one that lives was taken")
	}
	if err := living.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitLink("leo-1", "bound")
}

// TestSessionLockBetweenLooks: a session that was had again between two looks of the
// others has not been gone without a break, although each of them saw none.
func TestSessionLockBetweenLooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO dispatchers (id, name, session) OVERRIDING SYSTEM VALUE VALUES (77, 'cut', true)`); err != nil {
		t.Fatal(err)
	}
	mno := w.carrier(carriersim.Options{NoFates: true})
	w.startWith(dispatcher.Options{DeadAfter: time.Hour, AbsentFor: 2 * time.Second}, mno.mno())
	w.awaitLink("lumitel-1", "bound")
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
		w.count(`WITH back AS (UPDATE dispatchers SET session_at = clock_timestamp() WHERE id = 77 RETURNING 1) SELECT count(*) FROM back`)
		time.Sleep(20 * time.Millisecond)
	}
	if w.count(`SELECT count(*) FROM dispatchers WHERE id = 77`) != 1 {
		t.Fatal("it was taken for dead")
	}
	w.until("it is taken for dead", func() bool { return w.count(`SELECT count(*) FROM dispatchers WHERE id = 77`) == 0 })
}

// TestSessionLockLost: a dispatcher whose session is cut while it lives has it back,
// and its binds stay. The one that stands by takes its absence for death later than
// it commonly would, because a busy machine may connect slowly.
func TestSessionLockLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true})
	w.start(mno.mno())
	id := w.count(`SELECT id FROM dispatchers`)
	w.startWith(dispatcher.Options{AbsentFor: 10 * time.Second}, mno.mno()) // it stands by
	w.until("there are two", func() bool { return w.count(`SELECT count(*) FROM dispatchers`) == 2 })
	ids := w.sendMany(100, "00")
	for range 3 {
		if n := w.count(`SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND classid = $1::int AND objid = $2
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, sessionLockKey, id); n > 1 {
			t.Fatalf("%d sessions have the lock", n)
		}
		ids = append(ids, w.sendMany(20, "00")...)
		w.until("its session is back", func() bool {
			return w.count(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = $1::int AND objid = $2 AND granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, sessionLockKey, id) == 1
		})
	}
	w.await("sent", 20*time.Second, ids...)
	if n := w.count(`SELECT count(*) FROM links WHERE owner = $1`, id); n != 1 {
		t.Error("another has its link")
	}
	if st := mno.Stats(); st.Duplicates != 0 || st.Connections != 1 {
		t.Errorf("%d arrived twice, over %d connections", st.Duplicates, st.Connections)
	}
}
