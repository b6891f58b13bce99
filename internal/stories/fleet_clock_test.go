package stories

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
)

// The clock of one API's machine is an hour ahead, and that of the dispatcher's that leads
// an hour behind; then the other way round. Nothing goes by them: what is for later goes out when it is time, a code that is good for minutes is neither taken for expired nor said to
// be good for longer, a webhook is signed with the time that its receiver has, what is shown
// and kept has the time at which it was, ids grow with time, and the leases are kept.
func TestFleetClock(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	for name, api := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			if apart(t, wrongBinary) {
				clocks(t, api, -api).keepTime()
			}
		})
	}
}

func wrongBinary(t *testing.T) string { return wrongVariable + "=" + wrongClock(t) }

// clocks is a fleet of which one API and the dispatcher that leads have clocks of their own,
// ahead by so much.
func clocks(t *testing.T, api, dispatcher time.Duration) *world {
	t.Helper()
	one := steady()
	one.own, one.link = true, tree{"window": window, "tps": 200}
	w := fleet(t, scene{carriers: []carrier{one}, dark: true})
	leads := w.dispatchers()[0]
	w.dispatchers()[1].roles = "dispatcher" // the webhooks are all with the one that is wrong
	for g, ahead := range map[*gateway]time.Duration{w.apis()[1]: api, leads: dispatcher} {
		g.build, g.env = wrongClock(t), []string{aheadVariable + "=" + strconv.Itoa(int(ahead/time.Second))}
	}
	leads.start()
	w.bound()
	for _, g := range w.gateways {
		if g != leads {
			g.start()
		}
	}
	for g, ahead := range map[*gateway]time.Duration{w.apis()[0]: 0, w.apis()[1]: api, leads: dispatcher} {
		w.eventually(10*time.Second, g.name+" says how wrong its clock is", func() bool {
			d := g.metric("intumwa_clock_ahead_seconds") - ahead.Seconds()
			return d > -2 && d < 2
		})
	}
	return w
}

// clockSlack is how far apart two moments may be that should be one: seconds are
// written without their fractions, and a machine with much to do is late.
const clockSlack = 5 * time.Second

func (w *world) keepTime() {
	t := w.t
	shop := w.company("Isoko", 1_000_000)
	type sending struct {
		id, to string
		due    time.Time // when it is for; zero: at once
		ends   time.Time // when it is over; zero: in days
	}
	var sent []sending
	begin := time.Now()
	send := func(g *gateway, want int, more map[string]any) (a answer, to string) {
		t.Helper()
		to = w.number()
		body := map[string]any{"phone_number": to, "sender": shop.sender, "message": "Kode yawe ni " + word()}
		for name, value := range more {
			body[name] = value
		}
		shop.plant(to, body["message"].(string))
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if a = shop.posts(g, text); a.err != nil || a.status != want {
			t.Errorf("%s answers %v with %d %s %v, want %d", g.name, more, a.status, a.body, a.err, want)
		}
		return a, to
	}
	stamp := func(d time.Duration) (time.Time, string) {
		at := time.Now().Add(d).UTC().Truncate(time.Second)
		return at, at.Format(time.RFC3339)
	}
	for _, g := range w.apis() {
		// A code that is good for three minutes.
		over, text := stamp(3 * time.Minute)
		a, to := send(g, http.StatusOK, map[string]any{"expire_at": text})
		sent = append(sent, sending{a.ID, to, time.Time{}, over})
		// What is for later, soon and in less than an hour.
		soon, text := stamp(8 * time.Second)
		a, to = send(g, http.StatusOK, map[string]any{"send_at": text})
		sent = append(sent, sending{a.ID, to, soon, time.Time{}})
		_, text = stamp(time.Hour - 20*time.Second)
		_, early := send(g, http.StatusOK, map[string]any{"send_at": text})
		defer func() {
			if len(w.lumitel.segmentsOf(early)) > 0 {
				t.Errorf("what %s took for in an hour was sent at once", g.name)
			}
		}()
		// What is over.
		_, text = stamp(-5 * time.Minute)
		send(g, http.StatusUnprocessableEntity, map[string]any{"send_at": text})
		send(g, http.StatusUnprocessableEntity, map[string]any{"expire_at": text})
	}
	last := ""
	for i := range 10 {
		a, to := send(w.apis()[i%2], http.StatusOK, nil)
		if a.ID <= last {
			t.Errorf("%s of %s is not above %s, which is older", a.ID, w.turns(i).name, last)
		}
		last = a.ID
		sent = append(sent, sending{a.ID, to, time.Time{}, time.Time{}})
		<-time.After(300 * time.Millisecond) // ids that are as old as each other may stand in any order
	}
	now := func(what string, at time.Time, from time.Time) {
		t.Helper()
		if at.Before(from.Add(-clockSlack)) || at.After(time.Now().Add(clockSlack)) {
			t.Errorf("%s is %v, it is %v and was not before %v", what, at, time.Now(), from)
		}
	}
	for _, s := range sent {
		m := w.becomes(s.id, "sent")
		got := w.lumitel.segmentsOf(s.to)
		if len(got) != 1 {
			t.Fatalf("the carrier got %d of a message", len(got))
		}
		if late := got[0].At.Sub(s.due); !s.due.IsZero() && (late < 0 || late > clockSlack) {
			t.Errorf("what was for %v was sent %v late", s.due, late)
		}
		if left := relative(t, got[0].Validity); !s.ends.IsZero() && (left-s.ends.Sub(got[0].At)).Abs() > clockSlack {
			t.Errorf("what is good for %v is said to be good for %v", s.ends.Sub(got[0].At), left)
		}
		now("created_at", m.CreatedAt, begin)
		now("sent_at", *m.SentAt, begin)
		for _, e := range m.History {
			now("the moment of "+e.Event, e.At, begin)
		}
		told := shop.hears(m.MessageID, settledWithin) // its signature was checked, with its time
		at, err := time.Parse(time.RFC3339, told.Timestamp)
		if err != nil || told.Data.SentAt == nil {
			t.Fatalf("a webhook says %s", told.body)
		}
		now("a webhook's timestamp", at, begin)
	}
	leader, other := w.leads("lumitel-1")
	if leader != w.dispatchers()[0] {
		t.Errorf("%s leads, as if the clock were asked who lives", leader.name)
	}
	leader.kill()
	w.eventually(12*time.Second, "the other takes over", func() bool { holds, _ := w.leader("lumitel-1"); return holds == other })
	w.becomes(w.company("Ibanki", 1000).sendsAt(w.apis()[1], w.number(), "Amahoro "+word()).ID, "sent")
	w.lumitel.keptBounds(new(stalls), 1, 10_000)
}

// sendsAt sends a message to one of several gateways, which must accept it.
func (c *company) sendsAt(g *gateway, to, text string) answer {
	c.w.t.Helper()
	a := c.triesAt(g, to, text)
	if a.err != nil || a.status != http.StatusOK {
		c.w.t.Fatalf("a send to %s was answered %d %s %v, want 200", g.name, a.status, a.body, a.err)
	}
	return a
}

// relative reads a relative validity_period (SMPP 3.4, 7.1.1.2): without years and months.
func relative(t *testing.T, text string) time.Duration {
	t.Helper()
	if len(text) != 16 || !strings.HasPrefix(text, "0000") || !strings.HasSuffix(text, "000R") {
		t.Fatalf("the validity_period is %q", text)
	}
	field := func(at int) time.Duration {
		n, err := strconv.Atoi(text[at : at+2])
		if err != nil {
			t.Fatalf("the validity_period is %q", text)
		}
		return time.Duration(n)
	}
	return field(4)*24*time.Hour + field(6)*time.Hour + field(8)*time.Minute + field(10)*time.Second
}
