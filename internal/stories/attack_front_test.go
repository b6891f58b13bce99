package stories

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intumwa/internal/testenv"
)

// promptly is far above what a request takes on a busy machine, and below what
// the attacks cost everybody else when they worked.
const promptly = 8 * time.Second

// meanwhile sends messages of a company that has nothing to do with it, each of
// which must be accepted promptly, and answers how long each took.
func (c *company) meanwhile(messages int) (times []time.Duration) {
	c.w.t.Helper()
	for range messages {
		begin := time.Now()
		c.sends(c.w.number(), "Amahoro twese")
		took := time.Since(begin)
		if times = append(times, took); took > promptly {
			c.w.t.Errorf("somebody else's send took %v", took)
		}
	}
	return times
}

// dials connects to the gateway's API as 127.0.0.<from>.
func (g *gateway) dials(from byte) net.Conn {
	g.w.t.Helper()
	dialer := net.Dialer{Timeout: promptly, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}}
	conn, err := dialer.DialContext(g.w.t.Context(), "tcp", g.api)
	if err != nil {
		g.w.t.Fatalf("connecting: %v", err)
	}
	g.w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// head is a request's head; headers are whole lines.
func head(method, path, token string, headers ...string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nAuthorization: Bearer " + token +
		"\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
}

// Three clients at a time, of which one reads nothing, ask for what once was an answer of
// 116 MiB each: with a template that is much too long, and with the two that are just short
// enough and have most to complain of, in number and in octets. Answers and memory are
// bounded, and others send meanwhile.
func TestAttackMemory(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	w := play(t, scene{})
	attacker, shop := w.silentCompany("Isoko", 0), w.silentCompany("Inzu", 1000)
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	var names []string
	for i := range len(letters) * len(letters) {
		names = append(names, string([]byte{letters[i/len(letters)], letters[i%len(letters)]}))
	}
	resident := w.gateway.mostResident()
	var times []time.Duration
	for _, names := range [][]string{names, names[:100], {strings.Repeat("n", 596)}} {
		times = append(times, w.asksForMuch(attacker, shop, names)...)
	}
	w.gateway.keptBelow("large answers", resident(), 400, 700)
	lasted(t, "large answers", times)
	w.eventually(30*time.Second, "who reads nothing is let go, and all memory is given back", func() bool { return w.gateway.metric("intumwa_http_memory_octets") == 0 })
}

// asksForMuch has three clients each send a template with these placeholders and 500
// recipients, whose values are all wrong. It answers how long others' sends took meanwhile.
func (w *world) asksForMuch(attacker, shop *company, names []string) (times []time.Duration) {
	t := w.t
	t.Helper()
	var template, values strings.Builder
	for _, name := range names {
		fmt.Fprintf(&template, "{{%s}}", name)
		fmt.Fprintf(&values, `"%s":1,`, name)
	}
	recipient := `{"phone_number":"` + w.number() + `","variables":{` + strings.TrimSuffix(values.String(), ",") + `}}`
	body := `{"sender":"Isoko","template":"` + template.String() + `","recipients":[` + strings.Repeat(recipient+",", 499) + recipient + `]}`
	const most = 1<<20 + 64<<10 // what is listed, and what is around it
	var clients sync.WaitGroup
	defer clients.Wait()
	var answered atomic.Int64
	for i := range 3 {
		conn := w.gateway.dials(1)
		clients.Go(func() {
			_, _ = io.WriteString(conn, head(http.MethodPost, "/v1/sms/template", attacker.token, "Content-Length: "+strconv.Itoa(len(body)))+body)
			if i == 0 {
				return // and reads nothing
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Errorf("no answer: %v", err)
				return
			}
			defer answer.Body.Close()
			octets, err := io.Copy(io.Discard, answer.Body)
			if err != nil || answer.StatusCode != http.StatusUnprocessableEntity || octets > most {
				t.Errorf("%d placeholders are answered %d with %d octets, %v", len(names), answer.StatusCode, octets, err)
			}
			answered.Add(1)
		})
	}
	for begin := time.Now(); answered.Load() < 2 && time.Since(begin) < time.Minute; {
		times = append(times, shop.meanwhile(1)...)
	}
	return times
}

// One host opens more connections than there are; another is let in at once.
func TestAttackOneHost(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const all, each, dials = 10_000, 1000, 10_050
	w := play(t, scene{})
	shop := w.silentCompany("Isoko", 1000)
	resident := w.gateway.mostResident()
	for range dials {
		w.gateway.dials(7)
	}
	lasted(t, "one host's connections", shop.meanwhile(30))
	w.gateway.keptBelow("one host's connections", resident(), 400, 900)
	if n := w.gateway.metric("intumwa_http_connections_open", `listener="api"`); n > all {
		t.Errorf("%v connections are open", n)
	}
	w.eventually(promptly, "dropped connections are counted", func() bool {
		return w.gateway.metric("intumwa_http_connections_dropped_total", `listener="api"`, `reason="address"`) >= float64(dials-each)
	})
}

// Thirty-two sockets of four customers promise 16 MiB each and drip; the bulks
// of a fifth go through.
func TestAttackDrippedBodies(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	w := play(t, scene{})
	shop := w.silentCompany("Isoko", 10_000)
	var drippers []*company
	for range 4 {
		drippers = append(drippers, w.silentCompany("Inzu", 0))
	}
	ctx, stop := context.WithCancel(t.Context())
	var dripping sync.WaitGroup
	defer dripping.Wait()
	defer stop()
	for i := range 32 {
		conn := w.gateway.dials(1)
		if _, err := io.WriteString(conn, head(http.MethodPost, "/v1/sms/bulk", drippers[i%4].token, "Content-Length: "+strconv.Itoa(16<<20))+"{"); err != nil {
			t.Fatal(err)
		}
		dripping.Go(func() {
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				if _, err := io.WriteString(conn, "  "); err != nil {
					return
				}
			}
		})
	}
	resident := w.gateway.mostResident()
	var times []time.Duration
	for range 10 {
		body := `{"sender":"Isoko","messages":[{"phone_number":"` + w.number() + `","message":"Amahoro"}]}` + strings.Repeat(" ", 128<<10)
		begin := time.Now()
		answer := shop.calls(w.gateway, http.MethodPost, "/v1/sms/bulk", []byte(body))
		took := time.Since(begin)
		if times = append(times, took); answer.status != http.StatusOK || took > promptly {
			t.Errorf("a bulk was answered %d after %v", answer.status, took)
		}
	}
	lasted(t, "dripped bodies, bulks", times)
	w.gateway.keptBelow("dripped bodies", resident(), 400, 700)
}

// One customer looks for what is not there among all its messages, over four hundred
// connections; others send and look up.
func TestAttackLookups(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	w := play(t, scene{carriers: []carrier{steady()}})
	curious, shop := w.silentCompany("Isoko", 50_000), w.silentCompany("Inzu", 1000)
	curious.bulk(20_000, nil)
	w.drains()
	w.settles(settledWithin)
	lasted(t, "before look-ups", curious.meanwhile(30))
	looks := func(c *company, path string) int { return c.calls(w.gateway, http.MethodGet, path, nil).status }
	var all sync.WaitGroup
	var stop atomic.Bool
	var looked atomic.Int64
	resident := w.gateway.mostResident()
	for range 400 {
		all.Go(func() {
			for !stop.Load() {
				switch status := looks(curious, "/v1/sms?status=failed&from=2020-01-01&to=2100-01-01&limit=100"); status {
				case http.StatusOK, http.StatusTooManyRequests, http.StatusServiceUnavailable:
					looked.Add(1)
				default:
					t.Errorf("a look-up was answered %d", status)
					return
				}
			}
		})
	}
	defer all.Wait()
	defer stop.Store(true)
	w.eventually(promptly, "look-ups are under way", func() bool { return looked.Load() > 80 })
	lasted(t, "look-ups", shop.meanwhile(30))
	w.gateway.keptBelow("look-ups", resident(), 400, 700)
	w.eventually(promptly, "somebody else's look-up is answered", func() bool { return looks(shop, "/v1/balance") == http.StatusOK })
}

// One address tries many tokens: after its tries it is refused without the
// database being asked, and a customer behind the same address is not held up.
func TestAttackTokens(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	w := play(t, scene{})
	shop := w.silentCompany("Isoko", 1000)
	shop.meanwhile(1)
	asked := func() float64 { return w.gateway.metric("intumwa_token_lookups_total", `source="database"`) }
	guess := func(id int) answer {
		guesser := *shop
		guesser.token = strconv.Itoa(id) + "|" + strings.Repeat("A", 40)
		return guesser.tries("", "x")
	}
	id := 1_000_000
	w.eventually(finalWithin, "the address is told to wait", func() bool {
		const atOnce = 20 // a wrong one is answered slowly
		answers := make([]answer, atOnce)
		var all sync.WaitGroup
		for i := range answers {
			id++
			this := id
			all.Go(func() { answers[i] = guess(this) })
		}
		all.Wait()
		for _, a := range answers {
			wait, _ := strconv.Atoi(a.header.Get("Retry-After"))
			if a.status == http.StatusTooManyRequests && (wait < 1 || wait > 60) {
				t.Errorf("told to wait %d s", wait)
			}
		}
		return answers[atOnce-1].status == http.StatusTooManyRequests
	})
	const guesses = 500
	before, begin := asked(), time.Now()
	for range guesses {
		id++
		guess(id)
	}
	// A few a second remain for those whom this process does not know yet.
	if n, most := asked()-before, 40+25*time.Since(begin).Seconds(); n > most {
		t.Errorf("the database was asked %v times for %d guesses, want at most %v", n, guesses, most)
	}
	shop.meanwhile(5)
}
