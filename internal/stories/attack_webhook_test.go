package stories

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"intumwa/internal/testenv"
)

// takesOver answers a call on the bare connection, which it keeps until the
// caller closes it or say returns false. holding counts the connections that are
// kept so.
func takesOver(holding *atomic.Int64, say func(net.Conn) bool) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		holding.Add(1)
		defer holding.Add(-1)
		gone := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			close(gone)
		}()
		pause := time.NewTicker(100 * time.Millisecond)
		defer pause.Stop()
		for say(conn) {
			select {
			case <-gone:
				return
			case <-pause.C:
			}
		}
		<-gone
	}
}

// once says a text and then nothing; again says it for ever.
func once(text string) func(net.Conn) bool {
	return func(c net.Conn) bool {
		_, _ = io.WriteString(c, text)
		return false
	}
}

func again(first, text string) func(net.Conn) bool {
	return func(c net.Conn) bool {
		_, err := io.WriteString(c, first+text)
		first = ""
		return err == nil
	}
}

// Eleven endpoints answer 101 and keep the socket, others drip informational
// answers, headers and bodies. Another company's webhooks flow;
// each attempt ends by its deadline, is recorded and made again; SIGTERM in the
// midst of it is an orderly end, and leaves no delivery claimed.
func TestAttackHostileEndpoints(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const (
		handOvers = 11
		each      = 4
		messages  = 40
	)
	busy(t)
	w := play(t, scene{config: tree{"webhooks": tree{"timeout": "6s", "retry_delays": []string{"1s", "1h"}}}})
	var handed, held atomic.Int64
	var hostile []*company
	attack := func(holding *atomic.Int64, say func() func(net.Conn) bool) {
		c := w.silentCompany("Isoko", 1000)
		c.listens(func(rw http.ResponseWriter, r *http.Request) { takesOver(holding, say())(rw, r) })
		hostile = append(hostile, c)
	}
	for range handOvers {
		attack(&handed, func() func(net.Conn) bool {
			return once("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		})
	}
	for _, text := range [][2]string{
		{"", "HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n"},
		{"HTTP/1.1 500 No\r\n", "X: y\r\n"},
		{"HTTP/1.1 500 No\r\nContent-Length: 60000\r\n\r\n", "y"},
	} {
		attack(&held, func() func(net.Conn) bool { return again(text[0], text[1]) })
	}
	shop := w.company("Inzu", 1000)
	first := make([]string, len(hostile))
	for i, c := range hostile {
		for j := range each {
			if a := c.sends(w.number(), "Amahoro mwese"); j == 0 {
				first[i] = a.ID
			}
		}
	}
	for range messages {
		shop.sends(w.number(), "Amahoro twese")
	}
	w.eventually(finalWithin, "all webhooks of the company that answers", func() bool { return len(shop.webhooks()) == messages })
	for i, id := range first {
		m := w.message(id)
		attempts := 1 // each lasts as long as the deadline
		if i < handOvers {
			attempts = 2
		}
		w.eventually(finalWithin, "the hostile endpoint's attempts are recorded", func() bool {
			m = w.message(id)
			return len(m.Webhooks) == 1 && len(m.Webhooks[0].Attempts) >= attempts
		})
		for _, a := range m.Webhooks[0].Attempts {
			if a.Result == "2xx" || i < handOvers && a.Status != http.StatusSwitchingProtocols {
				t.Errorf("attack %d is recorded as %+v", i, a)
			}
		}
	}

	for _, c := range hostile {
		for range each {
			c.sends(w.number(), "Amahoro mwese")
		}
	}
	w.eventually(finalWithin, "calls hang as the end comes", func() bool { return held.Load() > 0 })
	code, took := w.gateway.terminate()
	if code != 0 || took > endWithin {
		t.Errorf("the gateway ended with code %d, %v after SIGTERM; want 0 within %v", code, took, endWithin)
	}
	t.Logf("it ended with code %d after %v", code, took.Round(time.Millisecond))
	w.eventually(endWithin, "no socket is left", func() bool { return handed.Load()+held.Load() == 0 })
	if log := string(w.gateway.logText()); strings.Contains(log, "Unsolicited response") {
		t.Error("an endpoint writes into the log")
	}
	w.gateway.start()
}
