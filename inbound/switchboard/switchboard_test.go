package switchboard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/inbound/handsets"
)

// TestMOFindsItsCompany: an MO goes to the company of its route, or to the only one with its address as a sender, and
// to no other.
func TestMOFindsItsCompany(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	w.route("8080", "bank", "", 2)
	w.takes(
		from("25779000001", "8080", "Amahoro"), from("25779000001", "8080", "BANK 5000"),
		from("25779000001", "7070", "Amahoro"),
		from("25779000002", "9090", "Yego"), from("25779000003", "acme", "Yego"), from("25779000003", "INTUMWATEST", "Yego"),
	)
	if got, want := w.outcomes(), []string{"routed", "routed", "unrouted", "routed", "routed", "unrouted"}; !slices.Equal(
		got, want) {
		t.Fatalf("outcomes %v, want %v", got, want)
	}
	if got := all[int64](w, `SELECT company_id FROM inbound_messages ORDER BY id`); !slices.Equal(
		got, []int64{1, 2, 1, 1}) {
		t.Errorf("companies %v", got)
	}
	w.exec(`INSERT INTO senders (company_id, name, approved) VALUES (2, 'Acme', true)`)
	w.takes(from("25779000003", "ACME", "Oya"))
	if got := w.outcomes()[6]; got != "unrouted" {
		t.Errorf("one of two companies was guessed: %s", got)
	}
	first := all[int64](w, `SELECT id FROM inbound_messages ORDER BY id`)[0]
	want := fmt.Sprintf(`1 {"inbound_id":%d,"from":"+25779000001","to":"8080","message":"Amahoro","received_at":"%s"}`,
		first,
		w.clock.Add(-6*time.Second).UTC().Format("2006-01-02T15:04:05-07:00"))
	if got := w.received(); len(got) != 4 || got[0] != want {
		t.Errorf("events\n%v\nwant first\n%s", got, want)
	}
}

// TestNoEventWithoutSubscription: an endpoint without the event, or switched off, gets no call; the company's list has
// the message.
func TestNoEventWithoutSubscription(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	for i, change := range []string{`events = '{}'`, `events = '{balance.low}'`,
		`events = '{sms.received}', active = false`, `active = true`} {
		w.exec(`UPDATE webhook_endpoints SET ` + change + ` WHERE company_id = 1`)
		w.takes(from("25779000001", "8080", fmt.Sprint("Amahoro ", i)))
	}
	if got := w.received(); len(got) != 1 || !strings.Contains(got[0], "Amahoro 3") {
		t.Errorf("events %v", got)
	}
	if n := one[int](w, `SELECT count(*) FROM inbound_messages`); n != 4 {
		t.Errorf("%d messages are listed", n)
	}
}

// TestLongMessages: parts in any order, with repetitions, between others and over two links make one message.
func TestLongMessages(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	a, b := "25779000001", "25779000002"
	w.takes(part(from(a, "8080", "three"), 7, 3, 3), part(from(b, "8080", "other "), 7, 1, 2),
		part(from(a, "8080", "one "), 7, 1, 3))
	w.takes(part(from(a, "8080", "one "), 7, 1, 3), from(a, "8080", "short"))
	w.takes(part(from(a, "8080", "two "), 7, 2, 3), part(from(a, "8080", "two "), 7, 2, 3))
	if got := all[string](w, `SELECT body FROM inbound_messages ORDER BY id`); !slices.Equal(
		got, []string{"short", "one two three"}) {
		t.Errorf("messages %q", got)
	}
	if got, want := w.outcomes(), []string{"routed", "waiting", "routed", "duplicate", "routed", "routed",
		"duplicate"}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if got := w.received(); len(got) != 2 {
		t.Errorf("events %v", got)
	}
	if n := one[int](w, `SELECT parts FROM inbound_messages WHERE body LIKE 'one%'`); n != 3 {
		t.Errorf("%d parts", n)
	}
}

// gaveUp lets ten minutes pass.
func (w *world) gaveUp() {
	w.Helper()
	w.exec(`UPDATE inbound SET received_at = received_at - interval '11 minutes'`)
	w.board.swept = time.Time{}
	w.look()
}

// TestPartNeverCame: after ten minutes the company gets what there is of a long message, with the gaps marked. A late
// part follows. What may be another company's goes to none.
func TestPartNeverCame(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	w.route("9090", "", "", 1)
	w.route("9090", "ORDER", "", 2)
	a := func(number, total int, text string) handsets.Inbound {
		return part(from("25779000001", "8080", text), 7, number, total)
	}
	b := func(number, total int, text string) handsets.Inbound {
		return part(from("25779000002", "9090", text), 7, number, total)
	}
	last := ""
	is := func(when string, want ...string) {
		t.Helper()
		if got := all[string](
			w, `SELECT company_id || ' ' || coalesce(body, '-') FROM inbound_messages ORDER BY id`); !slices.Equal(got, want) {
			t.Errorf("%s: messages %q, want %q", when, got, want)
		}
		if n := len(w.received()); n != len(want) {
			t.Errorf("%s: %d events", when, n)
		}
		last = strings.Join(w.outcomes(), " ")
	}
	w.takes(a(4, 5, "four "), a(1, 5, "one "), a(2, 5, "two "), b(1, 2, "Order 7 "))
	is("parts are missing")
	w.gaveUp()
	is("after ten minutes", "1 one two […]four […]", "2 Order 7 […]")
	if last != "incomplete incomplete incomplete incomplete" {
		t.Errorf("outcomes %s", last)
	}
	w.takes(a(3, 5, "three "), b(2, 2, "bread"))
	is("late ones", "1 one two […]four […]", "2 Order 7 […]", "1 […]three […]", "2 […]bread")
	w.gaveUp()
	w.takes(a(5, 5, "five"))
	is("another late one", "1 one two […]four […]", "2 Order 7 […]", "1 […]three […]", "2 […]bread", "1 […]five")
	w.takes(part(from("25779000003", "9090", "of whom?"), 8, 2, 2), part(from("25779000003", "8080", "STOP"), 8, 2, 2))
	w.gaveUp()
	is("without the first", "1 one two […]four […]", "2 Order 7 […]", "1 […]three […]", "2 […]bread", "1 […]five",
		"1 […]STOP")
	w.takes(part(from("25779000004", "8080", "old "), 9, 1, 2), part(from("25779000004", "8080", "new "), 9, 1, 2),
		part(from("25779000004", "8080", "one"), 9, 2, 2))
	is("another message under its reference", "1 one two […]four […]", "2 Order 7 […]", "1 […]three […]", "2 […]bread",
		"1 […]five", "1 […]STOP", "1 old […]", "1 new one")
	if got := w.optOuts(); len(got) != 0 {
		t.Errorf("opted out: %v", got)
	}
}

// TestStopInHalfAMessage: a long message that begins with STOP opts out even if the rest never arrives.
func TestStopInHalfAMessage(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	w.takes(part(from("25779000001", "8080", "Arrêt, je ne"), 7, 1, 2), part(from("25779000002", "8080", "STOP"), 7, 2, 2))
	if got := w.optOuts(); len(got) != 0 {
		t.Fatalf("listed at once: %v", got)
	}
	w.gaveUp()
	if got := w.optOuts(); !slices.Equal(got, []string{"1 +25779000001 "}) {
		t.Errorf("listed: %v", got)
	}
	if got := w.received(); len(got) != 2 {
		t.Errorf("events %v", got)
	}
}

// TestTooLong: a message with too many parts or bytes goes to operators only.
func TestTooLong(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	long := from("25779000001", "8080", "x")
	long.Octets = make([]byte, 60_000)
	w.takes(long, part(from("25779000001", "8080", "x"), 7, 1, handsets.MaxParts+1),
		part(from("25779000001", "8080", "x"), 8, 1, 255))
	if got := w.outcomes(); !slices.Equal(got, []string{"too_long", "too_long", "too_long"}) {
		t.Errorf("outcomes %v", got)
	}
	first, second := part(from("25779000001", "8080", "x"), 9, 1, 2), part(from("25779000001", "8080", "x"), 9, 2, 2)
	first.Octets, second.Octets = make([]byte, 39_000), make([]byte, 39_000)
	w.takes(first, second)
	if got := w.outcomes()[3:]; !slices.Equal(got, []string{"too_long", "too_long"}) {
		t.Errorf("long parts: outcomes %v", got)
	}
	if n := one[int](w, `SELECT count(*) FROM inbound_messages`); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// TestRepetition: a message that the carrier repeats reaches the company once.
func TestRepetition(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	w.takes(from("25779000001", "8080", "Yego"), from("25779000001", "8080", "Yego"), from("25779000001", "8080", "Oya"))
	w.clock = w.clock.Add(3 * time.Minute)
	w.takes(from("25779000001", "8080", "Yego"))
	if got, want := w.outcomes(), []string{"routed", "duplicate", "routed", "routed"}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if got := w.received(); len(got) != 3 {
		t.Errorf("events %v", got)
	}
}

// TestStop: a stop word opts out of the right sender; START removes the entry.
func TestStop(t *testing.T) {
	const number = "25779000001"
	for _, c := range []struct {
		name, to, text string
		want           []string // after it; none before
	}{
		{"the route's sender", "6060", "stop", []string{"1 +25779000001 ACME"}},
		{"the sender that is the address", "9090", "STOP", []string{"1 +25779000001 9090"}},
		{"by a route as well", "+9090", "Stop!", []string{"1 +25779000001 9090"}},
		{"all senders of the route's company", "8080", "ARRÊT svp", []string{"1 +25779000001 "}},
		{"the sender that is named", "8080", "hagarika acme", []string{"1 +25779000001 ACME"}},
		{"the company that is named", "8080", "STOP BANK", []string{"2 +25779000001 Bank"}},
		{"another's sender means nothing", "8080", "STOP autre", []string{"1 +25779000001 "}},
		{"not the first word", "8080", "ne pas STOP", nil},
		{"a longer word", "8080", "STOPPER", nil},
		{"an address of no company", "7070", "STOP", nil},
		{"a shared address without a name", "5050", "STOP", nil},
		{"a shared address", "5050", "STOP bank", []string{"2 +25779000001 Bank"}},
		{"no start word", "8080", "COMMENCER", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, Options{})
			w.route("6060", "", "ACME", 1)
			w.route("8080", "", "", 1)
			w.route("8080", "BANK", "Bank", 2)
			w.route("5050", "ACME", "ACME", 1)
			w.route("5050", "BANK", "Bank", 2)
			w.takes(from(number, c.to, c.text))
			if got := w.optOuts(); !slices.Equal(got, c.want) {
				t.Fatalf("listed %v, want %v", got, c.want)
			}
			w.takes(from(number, c.to, c.text+" ")) // again, with a space: not a repetition
			if got := w.optOuts(); !slices.Equal(got, c.want) {
				t.Errorf("after it again %v, want %v", got, c.want)
			}
			if len(c.want) == 0 {
				return
			}
			_, behind, _ := strings.Cut(c.text, " ")
			w.takes(from(number, c.to, "start "+behind), from("25779000002", c.to, c.text)) // together
			if got := w.optOuts(); !slices.Equal(got, []string{strings.Replace(c.want[0], number, "25779000002", 1)}) {
				t.Errorf("after START, and another's STOP, %v", got)
			}
		})
	}
}

// TestStopInBytes: a STOP counts where the bytes, or those of one part, are not text.
func TestStopInBytes(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	binary := func(source string, coding uint8, binary string) handsets.Inbound {
		m := from(source, "8080", "")
		m.Body, m.DataCoding, m.Octets = nil, coding, []byte(binary)
		return m
	}
	behind := binary("25779000004", 4, "\x01\x02")
	w.takes(binary("25779000001", 4, "STOP\xff\x00"), binary("25779000002", 0xF5, "Arret \x01"),
		binary("25779000003", 0x22, "\x00S\x00T\x00O\x00P"),
		part(from("25779000004", "8080", "STOP, "), 7, 1, 2), part(behind, 7, 2, 2), binary("25779000005", 4, "\x01STOPPER"),
		part(binary("25779000006", 4, "STOP "), 8, 1, 2), part(from("25779000006", "8080", "svp"), 8, 2, 2))
	want := []string{"1 +25779000001 ", "1 +25779000002 ", "1 +25779000003 ", "1 +25779000004 ", "1 +25779000006 "}
	if got := w.optOuts(); !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	if got := all[*string](w, `SELECT body FROM inbound_messages ORDER BY id`); len(got) != 6 || got[0] != nil ||
		got[3] == nil || *got[3] != "STOP, \ufffd" {
		t.Errorf("messages %v", got)
	}
}

// TestStopAgain: a STOP that looks like a repetition counts if a START came between; a repeated START does not.
func TestStopAgain(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	const number = "25779000001"
	w.takes(from(number, "8080", "STOP"), from(number, "8080", "START"), from(number, "8080", "STOP"),
		from(number, "8080", "START"))
	if got, want := w.outcomes(), []string{"routed", "routed", "duplicate", "duplicate"}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if got := w.optOuts(); !slices.Equal(got, []string{"1 +25779000001 "}) {
		t.Errorf("listed %v", got)
	}
	if got := w.received(); len(got) != 2 {
		t.Errorf("events %v", got)
	}
}

// TestStopOfAForeignNumber: a foreign number cannot be listed.
func TestStopOfAForeignNumber(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	w.takes(from("32479000000", "8080", "STOP"), from("INFO", "8080", "STOP"))
	if got := w.optOuts(); len(got) != 0 {
		t.Errorf("listed %v", got)
	}
	if got := all[string](w, `SELECT source FROM inbound_messages ORDER BY id`); !slices.Equal(
		got, []string{"32479000000", "INFO"}) {
		t.Errorf("messages of %v", got)
	}
}

// TestReplies: an acknowledgement goes out with the change, from the address that the handset wrote to, free of charge,
// at most four times a day.
func TestReplies(t *testing.T) {
	w := newWorld(t, Options{StopReply: "C'est fait.", StartReply: "Bienvenue.", Repeats: time.Nanosecond})
	w.route("8080", "", "", 1)
	w.takes(from("25779000001", "8080", "STOP"), from("25779000001", "8080", "STOP"),
		from("25779000001", "8080", "Amahoro"), from("25779000001", "8080", "START"))
	replies := func() (got []string) {
		return all[string](w, `SELECT m.company_id || ' ' || m.phone_number || ' ' || m.sender || ' ' || m.carrier || ' ' ||
			m.segments || ' ' || m.body
			FROM messages m JOIN outbox o ON o.message_id = m.id ORDER BY m.id`)
	}
	want := []string{"0 +25779000001 8080 lumitel 1 C'est fait.", "0 +25779000001 8080 lumitel 1 Bienvenue."}
	if got := replies(); !slices.Equal(got, want) {
		t.Fatalf("replies %q, want %q", got, want)
	}
	for range 3 {
		w.takes(from("25779000001", "8080", "STOP"), from("25779000001", "8080", "START"))
	}
	if got := replies(); len(got) != repliesMost {
		t.Errorf("%d replies to one handset, want %d", len(got), repliesMost)
	}
	if got := w.optOuts(); len(got) != 0 {
		t.Errorf("an unacknowledged change is missing: %v", got)
	}
	w.takes(from("25779999999", "8080", "STOP")) // no carrier takes it
	if got := replies(); len(got) != repliesMost {
		t.Errorf("replies %q", got)
	}
	if n := one[int](w, `SELECT count(*) FROM ledger`); n != 0 {
		t.Errorf("%d entries of the ledger", n)
	}
}

// TestTwoBoards: with two processes each message is routed once, each handset's in order.
func TestTwoBoards(t *testing.T) {
	w := newWorld(t, Options{Repeats: time.Nanosecond})
	second := w.another(w.board.opts)
	w.route("8080", "", "", 1)
	w.run(w.board)
	w.run(second)
	const handsetsOf, each = 20, 10
	var carriers sync.WaitGroup
	for i := range handsetsOf {
		carriers.Go(func() {
			for n := range each {
				text := "STOP"
				if n%2 == 1 {
					text = "START"
				}
				m := from(fmt.Sprintf("257790000%02d", i), "8080", text)
				m.At, m.Carrier, m.Octets = time.Now(), "lumitel", []byte(text)
				tx, err := w.pool.Begin(t.Context())
				if err == nil {
					err = w.store.Keep(t.Context(), tx, []handsets.Inbound{m})
				}
				if err == nil {
					err = tx.Commit(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
				[]*Switchboard{w.board, second}[n%2].Kick()
			}
		})
	}
	carriers.Wait()
	w.until("all are looked at",
		func() bool { return one[int](w, `SELECT count(*) FROM inbound WHERE outcome IS NULL`) == 0 })
	if n := one[int](w, `SELECT count(*) FROM inbound_messages`); n != handsetsOf*each {
		t.Errorf("%d messages, want %d", n, handsetsOf*each)
	}
	if n := one[int](w, `SELECT count(DISTINCT id) FROM webhook_deliveries`); n != handsetsOf*each {
		t.Errorf("%d events, want %d", n, handsetsOf*each)
	}
	if got := w.optOuts(); len(got) != 0 { // START was the last word of each
		t.Errorf("listed %v", got)
	}
}

// TestLockedRow: a STOP that needs a locked entry waits with that handset's later messages, in order; other handsets'
// messages do not.
func TestLockedRow(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `INSERT INTO opt_outs (company_id, phone_number, source)
		VALUES (1, '+25779000001', 'api')`); err != nil {
		t.Fatal(err)
	}
	w.takes(from("25779000001", "8080", "STOP"), from("25779000001", "8080", "START"),
		from("25779000002", "8080", "Amahoro"), from("25779000003", "8080", "Yego"))
	if got, want := w.outcomes(), []string{"", "", "routed", "routed"}; !slices.Equal(got, want) {
		t.Fatalf("outcomes %v, want %v", got, want)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	clear(w.board.delayed) // end the wait
	w.look()
	if got, want := w.outcomes(), []string{"routed", "routed", "routed", "routed"}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if got := w.optOuts(); len(got) != 0 {
		t.Errorf("listed %v", got)
	}
}

// TestManyLockedRows: many opt-outs from a company whose row is locked do not delay messages to other companies.
func TestManyLockedRows(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	w.route("9191", "", "", 2)
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), `SET LOCAL idle_in_transaction_session_timeout = 0; SELECT FROM companies
		WHERE id = 1 FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	const many = 15
	var inbound []handsets.Inbound
	for i := range many {
		inbound = append(inbound, from(fmt.Sprintf("257790000%02d", i), "8080", "STOP"))
	}
	w.takes(append(inbound, from("25779000099", "9191", "Yego"))...)
	if wait := w.board.lockWait(); wait != delayedWait {
		t.Errorf("each waits %v for the row, and not %v", wait, delayedWait)
	}
	if got := w.outcomes(); got[many] != "routed" || slices.Contains(got[:many], "routed") ||
		len(w.board.delayed) != many {
		t.Fatalf("outcomes %v, %d wait", got, len(w.board.delayed))
	}
	rest := time.Until(slices.MaxFunc(slices.Collect(maps.Values(w.board.delayed)), time.Time.Compare))
	if rest < delayedShare*delayedWait*many/2 {
		t.Errorf("they are tried again after %v", rest)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	clear(w.board.delayed) // end the wait
	w.look()
	if got := w.optOuts(); len(got) != many {
		t.Errorf("%d are listed", len(got))
	}
}

// TestRefusedRow: a message that the database refuses is left to operators and stops no others.
func TestRefusedRow(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	w.exec(`ALTER TABLE inbound_messages ADD CHECK (body <> 'poison')`)
	w.takes(from("25779000001", "8080", "Amahoro"), from("25779000001", "8080", "poison"),
		from("25779000001", "8080", "Yego"))
	if got, want := w.outcomes(), []string{"routed", "unrouted", "routed"}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
}

// TestTwoProcessesAtOnce: two processes store the deliveries of one carrier over two links. Their clocks differ, and
// the row with the smaller id may be committed last. A message that came over both links is reported once, and parts
// that came over both are joined.
func TestTwoProcessesAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		ahead time.Duration // of the first inserter's clock
		late  bool          // the row with the smaller id is committed last
	}{
		"in order":                        {},
		"the first clock is ahead":        {ahead: time.Millisecond},
		"the first commit is late":        {late: true},
		"the late one's clock is ahead":   {ahead: time.Millisecond, late: true},
		"the late one's clock is behind":  {ahead: -time.Millisecond, late: true},
		"the first clock is ahead by 90s": {ahead: 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, Options{})
			w.route("8080", "", "", 1)
			both := func(first, second handsets.Inbound) {
				t.Helper()
				var txs []pgx.Tx
				for i, m := range []handsets.Inbound{first, second} {
					m.Carrier, m.Link, m.Octets = "lumitel", fmt.Sprint("l", i), []byte(*m.Body)
					if m.At = w.clock; i == 0 {
						m.At = m.At.Add(c.ahead)
					}
					tx, err := w.pool.Begin(t.Context())
					if err == nil {
						err = w.store.Keep(t.Context(), tx, []handsets.Inbound{m})
					}
					if err != nil {
						t.Fatal(err)
					}
					txs = append(txs, tx)
				}
				if c.late {
					slices.Reverse(txs)
				}
				for _, tx := range txs {
					if err := tx.Commit(t.Context()); err != nil {
						t.Fatal(err)
					}
					if c.late { // it routes the one before the other is visible
						w.look()
					}
				}
				w.look()
			}
			const number = "25779000001"
			both(from(number, "8080", "Yego"), from(number, "8080", "Yego"))
			both(part(from(number, "8080", "one "), 7, 1, 2), part(from(number, "8080", "two"), 7, 2, 2))
			both(part(from(number, "8080", "one "), 7, 1, 2), part(from(number, "8080", "two"), 7, 2, 2)) // all of it again
			if got := all[string](w, `SELECT body FROM inbound_messages ORDER BY id`); !slices.Equal(
				got, []string{"Yego", "one two"}) {
				t.Errorf("messages %q", got)
			}
			if last := w.clock.Add(max(0, c.ahead)); one[int](
				w, `SELECT count(*) FROM inbound_messages WHERE parts = 2 AND received_at <> $1`, last) != 0 {
				t.Errorf("the joined message did not arrive with its last part, at %v", last)
			}
			if got := w.received(); len(got) != 2 {
				t.Errorf("events %v", got)
			}
		})
	}
}

// TestMOForBinds: an MO of a route with a key of kind SMPP waits for that key's binds too, once.
func TestMOForBinds(t *testing.T) {
	w := newWorld(t, Options{})
	w.exec(`INSERT INTO api_tokens (user_id, name, secret_hash, scopes, system_id, sessions, "window", tps)
		VALUES (1, 'k', decode(repeat('00', 32), 'hex'), '{smpp}', 'k', 4, 10, 20)`)
	if _, err := w.store.AddRoute(w.Context(), handsets.Route{Address: "8080", CompanyID: 1, Account: 1}); err != nil {
		t.Fatal(err)
	}
	w.route("9090", "", "", 1)
	w.takes(from("25779000001", "8080", "Amahoro"), from("25779000001", "8080", "Amahoro"),
		from("25779000001", "9090", "Yego"))
	if got := all[string](
		w, `SELECT concat_ws(' ', account, phone_number, address, body, sent) FROM smpp_deliveries`); !slices.Equal(
		got, []string{"1 +25779000001 8080 Amahoro"}) {
		t.Errorf("deliveries %q", got)
	}
	if got := w.received(); len(got) != 2 {
		t.Errorf("events %v", got)
	}
}
