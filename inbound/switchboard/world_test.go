package switchboard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/inbound/handsets"
)

// answer notes that all MOs were answered a millisecond after they came.
func (w *world) answer() {
	w.exec(`UPDATE inbound SET answered_at = received_at + interval '1 millisecond'`)
}

// TestTheSameTextAfterTheAnswer is a new message: someone answers "1" twice. A long text may come twice as well.
func TestTheSameTextAfterTheAnswer(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	for range 2 {
		w.takes(from("25779000001", "8080", "1"), part(from("25779000001", "8080", "one "), 7, 1, 2),
			part(from("25779000001", "8080", "two"), 7, 2, 2))
		w.answer()
	}
	if got := w.outcomes(); len(got) != 6 || slices.ContainsFunc(got, func(o string) bool { return o != "routed" }) {
		t.Errorf("outcomes %v", got)
	}
	if got := all[string](w, `SELECT body FROM inbound_messages ORDER BY id`); !slices.Equal(
		got, []string{"1", "one two", "1", "one two"}) {
		t.Errorf("messages %q", got)
	}
}

// TestAnAnswerOnItsWay: the same text soon after another one waits until it is known whether that was answered, and so
// do the handset's later texts; others do not.
func TestAnAnswerOnItsWay(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	w.clock = time.Now()
	later := []handsets.Inbound{from("25779000001", "8080", "1"), from("25779000001", "8080", "1"),
		from("25779000001", "8080", "2"), from("25779000002", "8080", "3")}
	for i := range later {
		m := &later[i]
		m.At, m.Carrier, m.Octets = w.clock.Add(time.Duration(i)*time.Millisecond), "lumitel", []byte(*m.Body)
	}
	if err := pgx.BeginFunc(t.Context(), w.pool,
		func(tx pgx.Tx) error { return w.store.Keep(t.Context(), tx, later) }); err != nil {
		t.Fatal(err)
	}
	w.look()
	if got, want := w.outcomes(), []string{"routed", "", "", "routed"}; !slices.Equal(got, want) {
		t.Fatalf("outcomes %v, want %v", got, want)
	}
	w.answer()
	clear(w.board.delayed)
	w.look()
	if got, want := w.outcomes(), []string{"routed", "routed", "routed", "routed"}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if got := all[string](w, `SELECT body FROM inbound_messages ORDER BY id`); !slices.Equal(
		got, []string{"1", "3", "1", "2"}) {
		t.Errorf("messages %q", got)
	}
}

// TestMoreThanAStop: whatever follows a stop word, it opts out. The company learns that the text says more.
func TestMoreThanAStop(t *testing.T) {
	for text, want := range map[string]string{
		"STOP":                      `,"opt_out":"stop"`,
		"STOP!!!":                   `,"opt_out":"stop"`,
		"STOP ACME":                 `,"opt_out":"stop"`,
		"STOP/ACME":                 `,"opt_out":"stop"`,
		"STOP BANK":                 `,"opt_out":"stop"`,
		"STOP ACME svp":             `,"opt_out":"stop","more_text":true`,
		"STOP.Murakoze":             `,"opt_out":"stop","more_text":true`,
		"STOP 12345":                `,"opt_out":"stop","more_text":true`,
		"Stop this bill now please": `,"opt_out":"stop","more_text":true`,
		"START":                     `,"opt_out":"start"`,
		"PAY#500":                   ``,
		"ne pas STOP":               ``,
	} {
		w := newWorld(t, Options{})
		w.route("8080", "", "", 1)
		w.route("8080", "BANK", "Bank", 2)
		w.takes(from("25779000001", "8080", text))
		if got := w.received(); len(got) != 1 || !strings.HasSuffix(got[0], `+00:00"`+want+`}`) {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
		if got := w.optOuts(); (len(got) == 1) != strings.Contains(want, "stop") {
			t.Errorf("%q: listed %v", text, got)
		}
	}
}

// TestKeywordsBeforeSigns: the first run of letters and digits selects the route.
func TestKeywordsBeforeSigns(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "PAY", "", 2)
	w.takes(from("25779000001", "8080", "PAY#500"), from("25779000001", "8080", "pay*500#"),
		from("25779000001", "8080", "PAY:500"), from("25779000001", "8080", "PAYMENT"))
	if got, want := w.outcomes(), []string{"routed", "routed", "routed", "unrouted"}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
}

// TestStopOfAnyForm: a number in any form of carriers is the same number.
func TestStopOfAnyForm(t *testing.T) {
	w := newWorld(t, Options{})
	w.route("8080", "", "", 1)
	w.takes(from("079000001", "8080", "STOP"), from("0025779000002", "8080", "STOP"), from("257079000003", "8080", "STOP"),
		from("257 79 00 00 04", "8080", "STOP"), from("00025779000005", "8080", "STOP"),
		from("+257-79-000006", "8080", "STOP"))
	want := []string{"1 +25779000001 ", "1 +25779000002 ", "1 +25779000003 ", "1 +25779000004 ", "1 +25779000005 ",
		"1 +25779000006 "}
	if got := w.optOuts(); !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

// TestReplySaysHowToUndo: {{start}} in the acknowledgement of an opt-out is the first start word.
func TestReplySaysHowToUndo(t *testing.T) {
	w := newWorld(t, Options{StopReply: "Vous ne recevrez plus rien. Pour annuler: {{start}}"})
	w.route("8080", "", "", 1)
	w.takes(from("25779000001", "8080", "STOP"))
	if got := all[string](w, `SELECT body FROM messages`); !slices.Equal(
		got, []string{"Vous ne recevrez plus rien. Pour annuler: START"}) {
		t.Errorf("%q", got)
	}
}
