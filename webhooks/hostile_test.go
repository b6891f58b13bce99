package webhooks

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// hostile is what one endpoint does with a connection on which a whole request
// has come. What it returns from ends the connection.
type hostile struct {
	answer func(net.Conn)
	status int
	result string
	hangs  bool // only the deadline ends it
}

const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"

// hostiles are the answers that are meant to do harm, each with what is recorded
// of it.
var hostiles = map[string]hostile{
	"101 and silence": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		untilGone(c)
	}, status: 101, result: resultOther},
	"101 and octets": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		for say(c, strings.Repeat("x", 4096)) {
			continue
		}
	}, status: 101, result: resultOther},
	"101 without upgrade": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		untilGone(c)
	}, status: 101, result: resultOther},
	"early hints dripping": {answer: drip("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), result: resultTimeout, hangs: true},
	"early hints flooding": {answer: pour("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), result: resultOther},
	"continue dripping":    {answer: drip("HTTP/1.1 100 Continue\r\n\r\n"), result: resultTimeout, hangs: true},
	"silence":              {answer: untilGone, result: resultTimeout, hangs: true},
	"status line dripping": {answer: func(c net.Conn) { say(c, "HTTP/1.1 20"); drip("0")(c) }, result: resultTimeout, hangs: true},
	"headers dripping":     {answer: func(c net.Conn) { say(c, ok); drip("X: y\r\n")(c) }, result: resultTimeout, hangs: true},
	"headers flooding":     {answer: func(c net.Conn) { say(c, ok); pour("X: y\r\n")(c) }, result: resultOther},
	"one endless header":   {answer: func(c net.Conn) { say(c, ok+"X: "); pour("yyyyyyyy")(c) }, result: resultOther},
	"200, body dripping": {answer: func(c net.Conn) { say(c, ok+"Content-Length: 60000\r\n\r\n"); drip("y")(c) },
		status: 200, result: result2xx, hangs: true},
	"500, body dripping": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 500 No\r\nContent-Length: 60000\r\n\r\n")
		drip("y")(c)
	}, status: 500, result: result5xx, hangs: true},
	"500, no body comes": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\n")
		untilGone(c)
	}, status: 500, result: result5xx, hangs: true},
	"500, endless body": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 500 No\r\n\r\n")
		pour(strings.Repeat("y", 4096))(c)
	}, status: 500, result: result5xx},
	"500, endless chunks": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n")
		pour("1;" + strings.Repeat("e", 1000) + "\r\ny\r\n")(c)
	}, status: 500, result: result5xx},
	"500, trailers dripping": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n")
		drip("X: y\r\n")(c)
	}, status: 500, result: result5xx, hangs: true},
	"500, one huge chunk": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n")
		pour(strings.Repeat("y", 4096))(c)
	}, status: 500, result: result5xx},
	"redirect with a body": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 307 Over there\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 60000\r\n\r\n")
		drip("y")(c)
	}, status: 307, result: result3xx, hangs: true},
	"negative length":  {answer: func(c net.Conn) { say(c, ok+"Content-Length: -1\r\n\r\n"); untilGone(c) }, result: resultOther},
	"two lengths":      {answer: func(c net.Conn) { say(c, ok+"Content-Length: 1\r\nContent-Length: 2\r\n\r\n"); untilGone(c) }, result: resultOther},
	"a frame of HTTP2": {answer: func(c net.Conn) { say(c, "\x00\x00\x00\x04\x00\x00\x00\x00\x00"); untilGone(c) }, result: resultTimeout, hangs: true},
	"HTTP2 by upgrade": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		untilGone(c)
	}, status: 101, result: resultOther},
	"version 9":       {answer: func(c net.Conn) { say(c, "HTTP/9.9 200 OK\r\n\r\n"); untilGone(c) }, status: 200, result: result2xx, hangs: true},
	"status 099":      {answer: func(c net.Conn) { say(c, "HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n") }, status: 99, result: resultOther},
	"status 999":      {answer: func(c net.Conn) { say(c, "HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n") }, status: 999, result: resultOther},
	"goes at once":    {answer: func(net.Conn) {}, result: resultOther},
	"resets the line": {answer: func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }, result: resultOther},
}

// say writes, and says whether the other side is still there.
func say(c net.Conn, text string) bool {
	_, err := io.WriteString(c, text)
	return err == nil
}

func untilGone(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// drip says the same again and again, slowly.
func drip(text string) func(net.Conn) {
	return func(c net.Conn) {
		gone := make(chan struct{})
		go func() { untilGone(c); close(gone) }()
		for say(c, text) {
			select {
			case <-gone:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// pour says the same as fast as it is read.
func pour(text string) func(net.Conn) {
	much := strings.Repeat(text, 4096/len(text)+1)
	return func(c net.Conn) {
		for say(c, much) {
			continue
		}
	}
}

// endpoint listens and answers with answer; open counts the connections that are
// open.
func endpoint(t testing.TB, answer func(net.Conn)) (url string, open *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	open = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Add(1)
			go func() {
				defer open.Add(-1)
				defer func() { _ = conn.Close() }()
				request, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, request.Body); err != nil {
					return
				}
				answer(conn)
			}()
		}
	}()
	return "http://" + l.Addr().String(), open
}

// TestHostileAnswers: whatever an endpoint answers, the attempt ends by its
// deadline, is recorded, is made again by the schedule, and leaves no connection
// behind.
func TestHostileAnswers(t *testing.T) {
	opts := quickly()
	opts.Timeout = 3 * time.Second
	opts.RetryDelays = []time.Duration{20 * time.Millisecond}
	w := New(batchPool(t), opts)
	names := map[int64]string{}
	open := map[string]*atomic.Int64{}
	company := int64(0)
	for name, h := range hostiles {
		company++
		url, count := endpoint(t, h.answer)
		setEndpoint(t, w, company, url)
		names[company], open[name] = name, count
	}
	run(t, w)
	for company := range names {
		enqueue(t, w, company, company*100, 1)
	}
	for company, name := range names {
		h := hostiles[name]
		want, attempts := StateFailed, 2
		if h.result == result2xx {
			want, attempts = "delivered", 1
		}
		var d Delivery
		eventually(t, name+": "+want, func() bool {
			d = only(t, w, company*100)
			return d.State == want
		})
		if len(d.Attempts) != attempts {
			t.Errorf("%s: %d attempts, want %d", name, len(d.Attempts), attempts)
		}
		for _, a := range d.Attempts {
			if a.Status != h.status || a.Result != h.result {
				t.Errorf("%s: recorded as %+v, want %d %s", name, a, h.status, h.result)
			}
			if took := time.Duration(a.DurationMS) * time.Millisecond; took > opts.Timeout+2*time.Second {
				t.Errorf("%s: took %s", name, took)
			}
			if len(a.Excerpt) > excerptBytes {
				t.Errorf("%s: %d octets kept", name, len(a.Excerpt))
			}
		}
		eventually(t, name+": no connection left", func() bool { return open[name].Load() == 0 })
	}
}

// TestHostileAnswersAtTheEnd: endpoints that hang do not hang the end. What was
// under way then is recorded as nothing and can be taken by others at once.
func TestHostileAnswersAtTheEnd(t *testing.T) {
	opts := quickly()
	opts.Timeout = time.Hour
	opts.Drain = 50 * time.Millisecond
	w := New(batchPool(t), opts)
	company, hanging := int64(0), map[int64]string{}
	var reached atomic.Int64
	for name, h := range hostiles {
		if !h.hangs && h.status != 101 {
			continue
		}
		company++
		url, _ := endpoint(t, func(c net.Conn) {
			reached.Add(1)
			h.answer(c)
		})
		setEndpoint(t, w, company, url)
		hanging[company] = name
	}
	stop := run(t, w)
	for company := range hanging {
		enqueue(t, w, company, company*100, 3)
	}
	eventually(t, "every endpoint is called", func() bool { return reached.Load() >= int64(len(hanging)) })
	stop()
	var claimed int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM webhook_undelivered WHERE claimed_until IS NOT NULL`).Scan(&claimed); err != nil || claimed != 0 {
		t.Errorf("%d deliveries stay claimed, %v", claimed, err)
	}
	for company, name := range hanging {
		if d := only(t, w, company*100); len(d.Attempts) > 0 && d.Attempts[0].Result == resultTimeout {
			t.Errorf("%s: the end is recorded as %+v", name, d.Attempts)
		}
	}
}

// TestNoMoreIsRead: of an answer's body no more than 64 KiB are read.
func TestNoMoreIsRead(t *testing.T) {
	for _, keep := range []bool{true, false} {
		body := new(endless)
		readAnswer(&http.Response{StatusCode: 500, Body: body}, keep)
		if body.read > maxAnswerBytes {
			t.Errorf("%d octets read", body.read)
		}
		protocol := new(endless)
		readAnswer(&http.Response{StatusCode: 101, Body: protocol}, keep)
		if protocol.read != 0 {
			t.Errorf("%d octets of another protocol read", protocol.read)
		}
	}
}

type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) { e.read += len(b); return len(b), nil }
func (e *endless) Close() error               { return nil }

// TestOneEndpointsShare: an endpoint that was quick until it had all the calls
// that it may have, and then hangs, leaves the others of its pool theirs.
func TestOneEndpointsShare(t *testing.T) {
	opts := quickly()
	opts.InFlight = 32
	opts.Timeout = patience // nothing is freed by the deadline
	opts.Drain = 50 * time.Millisecond
	w := New(batchPool(t), opts)
	var hold atomic.Bool
	var held atomic.Int64
	greedy := newSink(t, func(rw http.ResponseWriter, r *http.Request) {
		if hold.Load() {
			held.Add(1)
			hang(rw, r)
		}
	})
	other := newSink(t, nil)
	setEndpoint(t, w, 1, greedy.URL)
	setEndpoint(t, w, 2, other.URL)
	run(t, w)
	enqueue(t, w, 1, 1, 200)
	enqueue(t, w, 2, 100_000, 10)
	eventually(t, "both are known as quick", func() bool { return greedy.count() == 200 && other.count() == 10 })
	hold.Store(true)
	enqueue(t, w, 1, 1000, 200)
	eventually(t, "it hangs", func() bool { return held.Load() > 0 })
	enqueue(t, w, 2, 200_000, 50)
	eventually(t, "the other is told", func() bool { return other.count() == 60 })
	if n := held.Load(); n > 32/8 {
		t.Errorf("one endpoint holds %d of 32 calls", n)
	}
}

// TestManyHandOvers: eleven endpoints that answer 101 do not starve a pool of 32.
func TestManyHandOvers(t *testing.T) {
	opts := quickly()
	opts.InFlight = 32
	opts.Timeout = 300 * time.Millisecond
	opts.RetryDelays = []time.Duration{}
	w := New(batchPool(t), opts)
	for company := range int64(11) {
		url, _ := endpoint(t, hostiles["101 and silence"].answer)
		setEndpoint(t, w, company+1, url)
	}
	newcomer := newSink(t, nil)
	setEndpoint(t, w, 100, newcomer.URL)
	run(t, w)
	for company := range int64(11) {
		enqueue(t, w, company+1, (company+1)*1000, 20)
	}
	enqueue(t, w, 100, 1_000_000, 1)
	eventually(t, "a newcomer is told", func() bool { return newcomer.count() == 1 })
	eventually(t, "all are recorded", func() bool { return countState(t, w, exhausted) == 11*20 })
}
