package webhooks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
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
		a, took, ok := w.call(t.Context(), aim, &job{id: 8}, false)
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
	"early hints dripping": {answer: drip("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), result: resultTimeout, hangs: true},
	"early hints flooding": {answer: pour("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), result: resultOther},
	"silence":              {answer: untilGone, result: resultTimeout, hangs: true},
	"headers dripping":     {answer: func(c net.Conn) { say(c, ok); drip("X: y\r\n")(c) }, status: 200, result: result2xx, hangs: true},
	"headers flooding":     {answer: func(c net.Conn) { say(c, ok); pour("X: y\r\n")(c) }, status: 200, result: result2xx},
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
	"negative length":  {answer: func(c net.Conn) { say(c, ok+"Content-Length: -1\r\n\r\n"); untilGone(c) }, status: 200, result: result2xx},
	"a frame of HTTP2": {answer: func(c net.Conn) { say(c, "\x00\x00\x00\x04\x00\x00\x00\x00\x00"); untilGone(c) }, result: resultTimeout, hangs: true},
	"status 099":       {answer: func(c net.Conn) { say(c, "HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n") }, status: 99, result: resultOther},
	"status 999":       {answer: func(c net.Conn) { say(c, "HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n") }, status: 999, result: resultOther},
	"resets the line":  {answer: func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }, result: resultOther},
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

// TestResults calls every kind of bad receiver once.
func TestResults(t *testing.T) {
	var inside atomic.Int64
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	t.Cleanup(private.Close)

	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(zip, zeroes{}, 8<<20); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	var poured atomic.Int64

	handlers := map[string]struct {
		answer http.HandlerFunc
		status int
		result string
	}{
		"200":          {status(200), 200, result2xx},
		"204":          {status(204), 204, result2xx},
		"301 inside":   {http.RedirectHandler(private.URL, http.StatusMovedPermanently).ServeHTTP, 301, result3xx},
		"302 to cloud": {http.RedirectHandler("http://169.254.169.254/", http.StatusFound).ServeHTTP, 302, result3xx},
		"410":          {status(410), 410, result4xx},
		"500":          {status(500), 500, result5xx},
		"666":          {status(666), 666, resultOther},
		"hang":         {hang, 0, resultTimeout},
		"closes":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, resultOther},
		"10 GB": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "10000000000")
			n, _ := io.CopyN(rw, zeroes{}, 10_000_000_000)
			poured.Add(n)
		}, 200, result2xx},
		"gzip bomb": {func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "" {
				t.Error("a compressed answer was asked for")
			}
			rw.Header().Set("Content-Encoding", "gzip")
			rw.WriteHeader(500)
			_, _ = rw.Write(bomb.Bytes())
		}, 500, result5xx},
	}
	opts := quickly()
	hangs := opts // for receivers that never respond
	hangs.Timeout = 400 * time.Millisecond
	for name, test := range handlers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := opts
			if test.result == resultTimeout {
				opts = hangs
			}
			a := attempt(t, opts, newSink(t, test.answer).URL)
			if a.Status != test.status || a.Result != test.result {
				t.Errorf("%+v, want %d %s", a, test.status, test.result)
			}
		})
	}

	t.Run("no server", func(t *testing.T) {
		t.Parallel()
		for url, want := range map[string]string{
			closedPort(t):                                       resultRefused,
			"http://no-such-host.invalid/":                      resultDNS,
			speaks(t, "SSH-2.0-OpenSSH\r\n"):                    resultOther,
			strings.Replace(private.URL, "http:", "https:", 1):  resultTLS,
			selfSigned(t):                                       resultTLS,
			"https" + strings.TrimPrefix(speaks(t, ""), "http"): resultTimeout, // never shakes hands
		} {
			opts := opts
			if want == resultTimeout {
				opts = hangs
			}
			a := attempt(t, opts, url)
			if a.Result != want || a.Status != 0 || a.Error == "" {
				t.Errorf("%s: %+v, want %s", url, a, want)
			}
		}
	})
	t.Run("guarded", func(t *testing.T) {
		t.Parallel()
		guarded := opts
		guarded.AllowPrivate = false
		for _, url := range []string{private.URL, "https://127.0.0.1/", "https://localhost/", "https://[::1]/", "https://10.0.0.1/", "https://169.254.169.254/"} {
			a := attempt(t, guarded, url)
			if a.Result != resultBlocked || strings.Contains(a.Error, "127") {
				t.Errorf("%s: %+v", url, a)
			}
		}
	})
	t.Run("proxy", func(t *testing.T) {
		t.Setenv("HTTP_PROXY", private.URL)
		t.Setenv("ALL_PROXY", private.URL)
		attempt(t, opts, "http://no-such-host.invalid/")
	})
	t.Cleanup(func() {
		if n := inside.Load(); n != 0 {
			t.Errorf("%d requests reached the private server", n)
		}
		if n := poured.Load(); n > 64<<20 {
			t.Errorf("%d octets of the endless answer were taken", n)
		}
	})
}

// TestConnectionsAreKept: a response within the limit is read, and its connection reused.
func TestConnectionsAreKept(t *testing.T) {
	var connections, calls atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader([]int{204, 200, 500}[calls.Add(1)%3])
		_, _ = rw.Write(make([]byte, 60<<10))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	call := callWith(t, New(nil, quickly()), s.URL)
	for range 9 {
		call()
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestClosedAsTheRequestComes: when a server closes a kept connection as a request arrives, the
// request is sent again on a new one.
func TestClosedAsTheRequestComes(t *testing.T) {
	var connections atomic.Int64
	url := serve(t, func(conn net.Conn) {
		answers := 2
		if connections.Add(1) == 1 {
			answers = 1
		}
		in := bufio.NewReader(conn)
		for range answers + 1 {
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, request.Body); err != nil || answers == 0 {
				return
			}
			answers--
			say(conn, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	})
	call := callWith(t, New(nil, quickly()), url)
	for i := range 3 {
		if a := call(); a.Result != result2xx {
			t.Errorf("call %d: %+v", i, a)
		}
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// TestBrokenAnswerIsNotRepeated: once part of a response has arrived over a kept connection, the
// request is not sent again.
func TestBrokenAnswerIsNotRepeated(t *testing.T) {
	var requests atomic.Int64
	url := serve(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for _, answer := range []string{"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 20"} {
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			requests.Add(1)
			say(conn, answer)
		}
	})
	call := callWith(t, New(nil, quickly()), url)
	if a, b := call(), call(); a.Result != result2xx || b.Result != resultOther || requests.Load() != 2 {
		t.Errorf("%+v, %+v, %d requests", a, b, requests.Load())
	}
}

// TestUnaskedAnswer: data that a server sends between two requests, such as a 408 before it closes, is
// not taken for the next response.
func TestUnaskedAnswer(t *testing.T) {
	url, _ := endpoint(t, func(c net.Conn) {
		say(c, "HTTP/1.1 204 No Content\r\n\r\n")
		say(c, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
		untilGone(c)
	})
	w := New(nil, quickly())
	call := callWith(t, w, url)
	for range 2 {
		if a := call(); a.Status != 204 {
			t.Errorf("%+v", a)
		}
		eventually(t, "the other answer is there", func() bool { return !w.client.idle[0].silent() })
	}
}

// joined is a connection that joins its writes into one.
type joined struct {
	net.Conn
	waits bytes.Buffer
	hold  bool
}

func (j *joined) Write(b []byte) (int, error) {
	if j.hold {
		return j.waits.Write(b)
	}
	return j.Conn.Write(b)
}

// TestMoreThanTheAnswerOverTLS: data behind a response is not taken for the next one, even when TLS
// has already read it from the socket.
func TestMoreThanTheAnswerOverTLS(t *testing.T) {
	s := httptest.NewTLSServer(status(204))
	t.Cleanup(s.Close)
	for more, want := range map[string]bool{"": true, "0\r\n\r\n": false} {
		url := serve(t, func(c net.Conn) {
			j := &joined{Conn: c}
			secure := tls.Server(j, &tls.Config{Certificates: s.TLS.Certificates, MinVersion: tls.VersionTLS12})
			request, err := http.ReadRequest(bufio.NewReader(secure))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			j.hold = true
			_, _ = io.WriteString(secure, "HTTP/1.1 204 No Content\r\n\r\n")
			_, _ = io.WriteString(secure, more)
			_, _ = c.Write(j.waits.Bytes())
			untilGone(c)
		})
		socket, err := net.Dial("tcp", url[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		conn, err := newConnection(socket, tls.Client(socket, &tls.Config{InsecureSkipVerify: true}), place{name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		a, err := conn.exchange(t.Context(), []byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), false)
		if err != nil || a.status != 204 || !a.whole {
			t.Fatalf("%+v, %v", a, err)
		}
		eventually(t, "the state with "+strconv.Quote(more)+" behind the response", func() bool { return conn.silent() == want })
	}
}

// TestIdleConnectionsAreBounded: there are at most as many idle connections as calls
// may be in flight, and none stays for longer than idleTimeout.
func TestIdleConnectionsAreBounded(t *testing.T) {
	opts := quickly()
	opts.InFlight = 2
	w := New(nil, opts)
	var urls [3]string
	var open [3]*atomic.Int64
	for i := range urls {
		urls[i], open[i] = endpoint(t, func(c net.Conn) { say(c, "HTTP/1.1 204 No Content\r\n\r\n"); untilGone(c) })
		callWith(t, w, urls[i])()
	}
	left := func(want ...int64) {
		t.Helper()
		eventually(t, "connections are closed", func() bool {
			return open[0].Load() == want[0] && open[1].Load() == want[1] && open[2].Load() == want[2]
		})
	}
	left(0, 1, 1)
	w.client.idle[0].since = time.Now().Add(-idleTimeout)
	w.client.expiry.Reset(0)
	left(0, 0, 1)
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
		if _, err := conn.exchange(t.Context(), []byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), true); err != nil {
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

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.octets.Add(int64(n))
	return n, err
}

func TestResultOfUnknownError(t *testing.T) {
	if result, text := resultOfError(errors.New("tcp 10.0.0.1: strange")); result != resultOther || strings.Contains(text, "10.0") {
		t.Errorf("%s, %s", result, text)
	}
}

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

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// speaks is a server of another protocol: it sends its greeting and then nothing.
func speaks(t *testing.T, greeting string) string {
	return serve(t, func(conn net.Conn) { say(conn, greeting); untilGone(conn) })
}

func selfSigned(t *testing.T) string {
	s := httptest.NewUnstartedServer(status(200))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}
