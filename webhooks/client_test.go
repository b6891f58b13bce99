package webhooks

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// conversation listens and holds every connection as talk does, which gets the
// number of the connection and reads requests one by one.
func conversation(t *testing.T, talk func(n int64, c net.Conn, next func() bool)) (url string, connections *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	connections = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n := connections.Add(1)
			go func() {
				defer func() { _ = conn.Close() }()
				in := bufio.NewReader(conn)
				talk(n, conn, func() bool {
					r, err := http.ReadRequest(in)
					if err != nil {
						return false
					}
					_, err = io.Copy(io.Discard, r.Body)
					return err == nil
				})
			}()
		}
	}()
	return "http://" + l.Addr().String(), connections
}

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"

// calls calls a URL again and again with one caller.
func calls(t *testing.T, url string) (call func() Attempt, end context.CancelFunc) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	opts := quickly().withDefaults()
	opts.Timeout = patience
	w := New(nil, opts)
	c := newCaller(ctx, opts, w.guard)
	aim, err := w.newTarget(storedEndpoint{url: url, secret: newSecret()})
	if err != nil {
		t.Fatal(err)
	}
	return func() Attempt {
		a, _, ok := c.call(aim, &job{id: 8})
		if !ok {
			a.Result = "cut short"
		}
		return a
	}, end
}

// TestConnectionsAreKept: one connection carries call after call, through
// answers with and without a body, early hints among them.
func TestConnectionsAreKept(t *testing.T) {
	answers := []string{noContent, ok + "Content-Length: 2\r\n\r\nok", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + noContent,
		ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "HTTP/1.1 500 No\r\nContent-Length: 5\r\n\r\nsorry",
		ok + "Content-Length: 60000\r\n\r\n" + strings.Repeat("x", 60000)}
	url, connections := conversation(t, func(_ int64, c net.Conn, next func() bool) {
		for i := 0; next(); i++ {
			say(c, answers[i%len(answers)])
		}
	})
	call, _ := calls(t, url)
	for i := range 3 * len(answers) {
		want := result2xx
		if i%len(answers) == 4 {
			want = result5xx
		}
		if a := call(); a.Result != want || want == result5xx && a.Excerpt != "sorry" {
			t.Errorf("call %d: %+v", i, a)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestConnectionsThatAreNotKept: what the server closes, and what it says
// unasked, is not taken for an answer; the call goes out on a new connection.
func TestConnectionsThatAreNotKept(t *testing.T) {
	for name, after := range map[string]func(net.Conn){
		"closed by the server":   func(c net.Conn) { _ = c.Close() },
		"reset by the server":    func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() },
		"an answer unasked":      func(c net.Conn) { say(c, "HTTP/1.1 500 Lie\r\nContent-Length: 0\r\n\r\n") },
		"half of another answer": func(c net.Conn) { say(c, "HTTP/1.1 5") },
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{}, 10)
			url, connections := conversation(t, func(_ int64, c net.Conn, next func() bool) {
				if next() {
					say(c, noContent)
					after(c)
					done <- struct{}{}
					untilGone(c)
				}
			})
			call, _ := calls(t, url)
			for i := range 5 {
				if a := call(); a.Result != result2xx {
					t.Errorf("call %d: %+v", i, a)
				}
				<-done
			}
			if n := connections.Load(); n != 5 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestClosedAsTheRequestComes: a server that closes a kept connection as a
// request comes has not answered it: it is sent again, on a new one.
func TestClosedAsTheRequestComes(t *testing.T) {
	url, connections := conversation(t, func(n int64, c net.Conn, next func() bool) {
		if !next() {
			return
		}
		say(c, noContent)
		if n == 1 {
			next() // and is not heard of again
		} else if next() {
			say(c, noContent)
		}
	})
	call, _ := calls(t, url)
	for i := range 3 {
		if a := call(); a.Result != result2xx {
			t.Errorf("call %d: %+v", i, a)
		}
	}
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// TestEndCutsCalls: the end of the caller ends a call at once, wherever it is.
func TestEndCutsCalls(t *testing.T) {
	for name, begun := range map[string]string{"before the answer": "", "in the head": "HTTP/1.1 200", "in the body": ok + "Content-Length: 9\r\n\r\nx"} {
		t.Run(name, func(t *testing.T) {
			reached := make(chan struct{})
			url, _ := conversation(t, func(_ int64, c net.Conn, next func() bool) {
				next()
				say(c, begun)
				close(reached)
				untilGone(c)
			})
			call, end := calls(t, url)
			done := make(chan Attempt, 1)
			go func() { done <- call() }()
			<-reached
			end()
			select {
			case a := <-done:
				if name == "in the body" && a.Result != result2xx && a.Result != "cut short" || name != "in the body" && a.Result != "cut short" {
					t.Errorf("%+v", a)
				}
			case <-time.After(patience):
				t.Error("the call hangs")
			}
		})
	}
}
