package webhooks

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// TestPullExpired: a consumer that was away for longer than events are kept learns that it lost some. It can continue
// with the others.
func TestPullExpired(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true, Retention: 24 * time.Hour})
	pull(t, w, 1, Place{}, 1)
	enqueue(t, w, 1, 1, 2)
	_, first := pull(t, w, 1, Place{}, 1)
	_, second := pull(t, w, 1, first, 1)
	enqueue(t, w, 1, 3, 1)
	_, third := pull(t, w, 1, second, 1)
	enqueue(t, w, 1, 4, 1)
	perform(t, w, `UPDATE events SET at = now() - interval '25 hours' WHERE id / 8 = 2`)
	purge := func() {
		t.Helper()
		if _, err := (&eventPurge{0}).next(t.Context(), w.core, 1); err != nil {
			t.Fatal(err)
		}
	}
	purge()
	continued := func(after Place) Place {
		t.Helper()
		_, _, err := w.Pull(t.Context(), 1, after, 10)
		expired, ok := errors.AsType[*PlaceExpired](err)
		if !ok {
			t.Fatalf("at %v: %v", after, err)
		}
		return expired.Continue
	}
	for _, after := range []Place{{}, first} {
		want := []string{webhookID(8), webhookID(24), webhookID(32)}
		if after == first {
			want = want[1:]
		}
		if ids, _ := pull(t, w, 1, continued(after), 10); !slices.Equal(ids, want) {
			t.Errorf("continued: %v, want %v", ids, want)
		}
	}
	for n, after := range []Place{second, third} {
		if ids, _ := pull(t, w, 1, after, 10); len(ids) != 2-n {
			t.Errorf("an event that was read before it was deleted: %v", ids)
		}
	}
	// One that no consumer saw is deleted.
	_, last := pull(t, w, 1, third, 10)
	enqueue(t, w, 1, 5, 1)
	perform(t, w, `UPDATE events SET at = now() - interval '25 hours' WHERE position < 0`)
	purge()
	if ids, next := pull(t, w, 1, continued(last), 10); ids != nil || continued(last) != next {
		t.Errorf("continued: %v, %v", ids, next)
	}
	// Nobody asks for so long: recording ends, and begins anew.
	perform(t, w, `UPDATE event_readers SET pulled_at = now() - interval '25 hours'`)
	purge()
	enqueue(t, w, 1, 6, 1)
	next := continued(last)
	if ids, _ := pull(t, w, 1, next, 10); ids != nil {
		t.Errorf("back after a pause: %v", ids)
	}
	enqueue(t, w, 1, 7, 1)
	if ids, _ := pull(t, w, 1, next, 10); !slices.Equal(ids, []string{webhookID(56)}) {
		t.Errorf("back after a pause: %v", ids)
	}
	// Places that nobody has given are of events that a backup does not have.
	for _, unknown := range []Place{{Position: next.Position + 1<<60}, {Lost: next.Lost + 1<<60}} {
		if _, _, err := w.Pull(t.Context(), 1, unknown, 1); !isExpired(err, Place{Lost: next.Lost}) {
			t.Errorf("at %v: %v", unknown, err)
		}
	}
	if _, _, err := w.Pull(t.Context(), 2, first, 1); !isExpired(err, Place{}) {
		t.Errorf("a company without events: %v", err)
	}
}

func isExpired(err error, with Place) bool {
	expired, ok := errors.AsType[*PlaceExpired](err)
	return ok && expired.Continue == with
}

// TestPullAfterRestore: after a restored backup, new events come after the places that consumers have.
func TestPullAfterRestore(t *testing.T) {
	w := New(batchPool(t), quickly())
	pull(t, w, 1, Place{}, 1)
	enqueue(t, w, 1, 1, 3)
	_, lost := pull(t, w, 1, Place{}, 10)
	perform(t, w, `UPDATE event_readers SET last = last - 2`) // the backup has one event
	perform(t, w, `DELETE FROM events WHERE id / 8 > 1`)
	if err := pgx.BeginFunc(t.Context(), w.pool,
		func(tx pgx.Tx) error { return SkipPositions(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
	enqueue(t, w, 1, 3, 2)
	if ids, _ := pull(t, w, 1, lost, 10); !slices.Equal(ids, []string{webhookID(24), webhookID(32)}) {
		t.Errorf("after the restore: %v", ids)
	}
	// On a hosted server that does not tell its origin.
	w.waiters.hosted.Store(true)
	pull(t, w, 2, Place{}, 1)
	enqueue(t, w, 2, 5, 1)
	if ids, _ := pull(t, w, 2, Place{}, 10); len(ids) != 1 {
		t.Errorf("without an origin: %v", ids)
	}
}

// TestPullAfterDump: in a database that was made from a dump, and nobody said so, every consumer learns that events may
// be lost, and gets all that come after. A second restore of the same dump is another database.
func TestPullAfterDump(t *testing.T) {
	source, err := url.Parse(testenv.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(source.Path, "/")
	of := func(database string) string {
		u := *source
		u.Path = "/" + database
		return u.String()
	}
	connect := func(database string) (*Webhooks, func()) {
		pool, err := postgres.Open(t.Context(), of(database), postgres.Options{BatchUpdates: true})
		if err != nil {
			t.Fatal(err)
		}
		return New(pool, quickly()), pool.Close
	}
	before, leave := connect(name)
	pull(t, before, 1, Place{}, 1)
	enqueue(t, before, 1, 1, 3)
	_, seen := pull(t, before, 1, Place{}, 10)
	leave()
	admin, err := pgx.Connect(t.Context(), of("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.Background()) })
	create := func(database, from string) {
		t.Cleanup(func() { _, _ = admin.Exec(context.Background(), "DROP DATABASE "+database+" WITH (FORCE)") })
		if _, err := admin.Exec(t.Context(), "CREATE DATABASE "+database+" TEMPLATE "+from); err != nil {
			t.Fatal(err)
		}
	}
	create(name+"_dump", name)
	var places []Place
	for n, database := range []string{name, name + "_once", name + "_again"} {
		if n > 0 {
			create(database, name+"_dump")
		}
		w, leave := connect(database)
		enqueue(t, w, 1, int64(10*(n+1)), 5)
		want := make([]string, 5)
		for i := range want {
			want[i] = webhookID(int64(10*(n+1)+i) * 8)
		}
		for _, place := range slices.Concat(places, []Place{seen}) {
			at := place
			if n > 0 {
				_, _, err := w.Pull(t.Context(), 1, place, 10)
				expired, ok := errors.AsType[*PlaceExpired](err)
				if !ok {
					t.Fatalf("database %d at %v: %v", n, place, err)
				}
				at = expired.Continue
			}
			ids, next := pull(t, w, 1, at, 10)
			if !slices.Equal(ids, want) {
				t.Errorf("database %d at %v: %v", n, place, ids)
			}
			places = append(places, next)
		}
		leave()
	}
}

// TestPullPagesAreBounded: a page has a bounded size, and at least one event.
func TestPullPagesAreBounded(t *testing.T) {
	w := New(batchPool(t), quickly())
	pull(t, w, 1, Place{}, 1)
	large := string(make([]byte, pullOctets/6)) // six bytes each in JSON
	events := make([]Event, 3)
	for i := range events {
		text := large[:len(large)*(1+i%2)/2]
		events[i] = Event{CompanyID: 1, MessageID: int64(i + 1), Name: Received, At: time.Now(),
			Data: ReceivedData{Message: &text}}
	}
	enqueueAll(t, w, events)
	var sizes []int
	for place := (Place{}); ; {
		ids, next := pull(t, w, 1, place, 500)
		if len(ids) == 0 {
			break
		}
		sizes, place = append(sizes, len(ids)), next
	}
	if !slices.Equal(sizes, []int{1, 1, 1}) {
		t.Errorf("pages of %v events", sizes)
	}
}
