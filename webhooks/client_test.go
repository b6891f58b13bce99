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

// attempt calls a URL once. It suits many parallel calls on a busy machine.
func attempt(t *testing.T, opts Options, url string) Attempt {
	t.Helper()
	w := New(nil, opts)
	defer w.client.closeIdle(0)
	return callWith(t, w, url)()
}

// callWith returns a function that calls a URL.
func callWith(t testing.TB, w *Webhooks, url string) func() Attempt {
	t.Helper()
	aim, err := w.newTarget(storedEndpoint{url: url, secret: newSecret()})
	if err != nil {
		t.Fatal(err)
	}
	return func() Attempt {
		a, took, ok := w.call(t.Context(), aim, &storedEvent{id: 8}, false)
		if !ok {
			t.Fatal("cut short")
		}
		if len(a.Excerpt) > excerptBytes {
			t.Errorf("%d octets kept of the answer", len(a.Excerpt))
		}
		if took > w.opts.Timeout+5*time.Second {
			t.Errorf("took %s", took)
		}
		return a
	}
}

func status(code int) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) }
}

// TestHostileAnswers: whatever an endpoint returns, the attempt ends by its deadline, is recorded, and
// leaves no connection open.
func TestHostileAnswers(t *testing.T) {
	for name, h := range hostiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := quickly()
			if h.hangs {
				opts.Timeout = 400 * time.Millisecond
				if h.status != 0 { // which must be read in that time
					opts.Timeout = 5 * time.Second
				}
			}
			url, open := endpoint(t, h.answer)
			if a := attempt(t, opts, url); a.Status != h.status || a.Result != h.result {
				t.Errorf("%+v, want %d %s", a, h.status, h.result)
			}
			eventually(t, "no connection left", func() bool { return open.Load() == 0 })
		})
	}
}

// hostile is an endpoint's behaviour on a connection after a whole request has arrived. The connection
// ends when answer returns.
type hostile struct {
	answer func(net.Conn)
	status int
	result string
	hangs  bool // only the deadline ends it
}

const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"

// hostiles are harmful responses, each with the result to record.
var hostiles = map[string]hostile{
	"101 and silence": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		untilGone(c)
	}, status: 101, result: resultOther},
	"early hints dripping": {answer: drip("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), result: resultTimeout,
		hangs: true},
	"early hints flooding": {answer: pour("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), result: resultOther},
	"silence":              {answer: untilGone, result: resultTimeout, hangs: true},
	"headers dripping": {answer: func(c net.Conn) { say(c, ok); drip("X: y\r\n")(c) }, status: 200, result: result2xx,
		hangs: true},
	"headers flooding": {answer: func(c net.Conn) { say(c, ok); pour("X: y\r\n")(c) }, status: 200, result: result2xx},
	"200, body dripping": {answer: func(c net.Conn) { say(c, ok+"Content-Length: 60000\r\n\r\n"); drip("y")(c) },
		status: 200, result: result2xx, hangs: true},
	"500, endless body": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 500 No\r\n\r\n")
		pour(strings.Repeat("y", 4096))(c)
	}, status: 500, result: result5xx},
	"500, endless chunks": {answer: func(c net.Conn) {
		say(c, "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n")
		pour("1;" + strings.Repeat("e", 1000) + "\r\ny\r\n")(c)
	}, status: 500, result: result5xx},
	"negative length": {answer: func(c net.Conn) { say(c, ok+"Content-Length: -1\r\n\r\n"); untilGone(c) }, status: 200,
		result: result2xx},
	"a frame of HTTP2": {answer: func(c net.Conn) { say(c, "\x00\x00\x00\x04\x00\x00\x00\x00\x00"); untilGone(c) },
		result: resultTimeout, hangs: true},
	"status 099": {answer: func(c net.Conn) { say(c, "HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n") }, status: 99,
		result: resultOther},
	"status 999": {answer: func(c net.Conn) { say(c, "HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n") },
		status: 999, result: resultOther},
	"resets the line": {answer: func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }, result: resultOther},
}

// say writes and reports whether the other side is still connected.
func say(c net.Conn, text string) bool {
	_, err := io.WriteString(c, text)
	return err == nil
}

func untilGone(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// drip sends the same text again and again, slowly.
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

// pour sends the same text as fast as it is read.
func pour(text string) func(net.Conn) {
	much := strings.Repeat(text, 4096/len(text)+1)
	return func(c net.Conn) {
		for say(c, much) {
			continue
		}
	}
}

// TestNoMoreIsRead: at most 64 KiB of a response are read, and nothing behind the head of a 101.
func TestNoMoreIsRead(t *testing.T) {
	for head, most := range map[string]int64{
		"HTTP/1.1 500 No\r\n\r\n": maxAnswerBytes,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n": maxAnswerBytes,
		"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n":              maxAnswerBytes,
		"HTTP/1.1 200 OK\r\nX: ":                                           maxHeadBytes,
		"HTTP/1.1 101 Switching Protocols\r\n\r\n":                         maxHeadBytes,
	} {
		read := new(counted)
		url, _ := endpoint(t, func(c net.Conn) { say(c, head); pour("y")(c) })
		socket, err := net.Dial("tcp", url[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		conn, err := newConnection(socket, read.of(socket), place{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.exchange(t.Context(), []byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
			true); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
		if n := read.octets.Load(); n > most {
			t.Errorf("%q: %d octets read", head, n)
		}
	}
}

// counted counts what is read from a connection.
type counted struct {
	net.Conn
	octets atomic.Int64
}

func (c *counted) of(conn net.Conn) net.Conn { c.Conn = conn; return c }

// serve runs talk on each connection, which ends when talk returns.
func serve(t testing.TB, talk func(net.Conn)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				talk(conn)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// endpoint reads a request and responds with answer; open counts the open connections.
func endpoint(t testing.TB, answer func(net.Conn)) (url string, open *atomic.Int64) {
	open = new(atomic.Int64)
	return serve(t, func(conn net.Conn) {
		open.Add(1)
		defer open.Add(-1)
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err == nil {
			answer(conn)
		}
	}), open
}
