package webhooks

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

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
		eventually(t, "the state with "+strconv.Quote(more)+" behind the response",
			func() bool { return conn.silent() == want })
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
