package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"
)

// doorway is a real server behind a door.
type doorway struct {
	*door
	t        *testing.T
	registry *prometheus.Registry
	address  string
	log      *bytes.Buffer
}

// openDoor serves a handler behind a door until the test ends. change may be nil.
func openDoor(t *testing.T, most, perAddress int, proxies []string, handler http.Handler, change func(*door)) *doorway {
	t.Helper()
	w := &doorway{t: t, registry: prometheus.NewRegistry(), log: &bytes.Buffer{}}
	w.door = newDoor("test", most, perAddress, proxies, slog.New(slog.NewTextHandler(w.log, nil)), w.registry)
	if change != nil {
		change(w.door)
	}
	w.address = freeAddress(t)
	ctx, cancel := context.WithCancel(context.Background())
	life := newLife(ctx)
	err := life.listen(ctx, "door", w.address, w.door, &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); life.end() })
	return w
}

// dial connects from an address of this machine: 127.0.0.<from>.
func (w *doorway) dial(from int) net.Conn {
	w.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(from))}}
	conn, err := dialer.DialContext(w.t.Context(), "tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// ask sends a request on a connection, which stays open, and answers the status.
func ask(conn net.Conn) (status int, err error) {
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, errors.Join(err, answer.Body.Close())
}

func (w *doorway) metric(name, reason string) (value float64) {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (reason == "" || m.GetLabel()[len(m.GetLabel())-1].GetValue() == reason) {
				value += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return value
}

func (w *doorway) dropped(reason string) float64 {
	return w.metric("intumwa_http_connections_dropped_total", reason)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// closed tells whether the server has closed the connection: it says nothing
// else unasked.
func closed(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// One host with as many connections as it likes, without a token: it keeps its
// own newest ones, and everybody else gets in.
func TestOneHostDoesNotFillTheDoor(t *testing.T) {
	w := openDoor(t, 100, 10, nil, http.HandlerFunc(hello), nil)
	var conns []net.Conn
	for range 150 {
		conns = append(conns, w.dial(2))
	}
	eventually(t, "not all of them were seen", func() bool {
		return w.dropped(dropAddress) == 140 && w.metric("intumwa_http_connections_open", "") == 10
	})
	for i, from := range []int{3, 4, 5} {
		if status, err := ask(w.dial(from)); err != nil || status != 200 {
			t.Errorf("another host, %d: %d %v", i, status, err)
		}
	}
	eventually(t, "its oldest connection is open", func() bool { return closed(conns[0]) })
	if closed(conns[149]) {
		t.Error("its newest is closed")
	}
	if status, err := ask(conns[149]); err != nil || status != 200 {
		t.Errorf("its newest: %d %v", status, err)
	}
	if lines := strings.Count(w.log.String(), "reason=address"); lines != 1 || !strings.Contains(w.log.String(), "127.0.0.2/32") {
		t.Errorf("%d lines: %s", lines, w.log)
	}
}

// Requests under way are not interrupted: a new connection is refused instead.
func TestAddressWithRequestsUnderWay(t *testing.T) {
	release := make(chan struct{})
	var inside sync.WaitGroup
	inside.Add(3)
	w := openDoor(t, 100, 3, []string{"127.0.0.9", "127.1.0.0/16"}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.RemoteAddr, "127.0.0.9:") {
			inside.Done()
			<-release
		}
		hello(w, r)
	}), nil)
	answers := make(chan error, 3)
	for range 3 {
		conn := w.dial(2)
		go func() {
			_, err := ask(conn)
			answers <- err
		}()
	}
	inside.Wait()
	eventually(t, "the server does not see the requests", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.idle.Len() == 0 })
	if _, err := ask(w.dial(2)); err == nil {
		t.Error("a fourth connection was let in")
	}
	for range 20 { // the proxy may have as many as there are
		if status, err := ask(w.dial(9)); err != nil || status != 200 {
			t.Errorf("the proxy: %d %v", status, err)
		}
	}
	close(release)
	for range 3 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if n := w.dropped(dropAddress); n != 1 {
		t.Errorf("%v were dropped", n)
	}
}

// When all connections are taken the oldest idle one gives way, the proxy's
// last; when none is idle, who comes waits and is served in the end.
func TestOldestIdleGivesWay(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, 10)
	w := openDoor(t, 3, 0, []string{"127.0.0.9"}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- struct{}{}
			<-release
		}
		hello(w, r)
	}), nil)
	proxy, first, second := w.dial(9), w.dial(2), w.dial(3)
	for _, conn := range []net.Conn{proxy, first, second, first} { // now second is the oldest but for the proxy's
		if _, err := ask(conn); err != nil {
			t.Fatal(err)
		}
	}
	if w.dropped("") != 0 {
		t.Fatal("something was dropped without need")
	}
	eventually(t, "they are not idle", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.idle.Len()+w.proxied.Len() == 3 })
	third := w.dial(4)
	if status, err := ask(third); err != nil || status != 200 {
		t.Fatalf("%d %v", status, err)
	}
	eventually(t, "the oldest is open", func() bool { return closed(second) })
	if closed(first) || closed(proxy) || w.dropped(dropIdle) != 1 {
		t.Error("another than the oldest gave way")
	}
	for _, conn := range []net.Conn{proxy, first, third} {
		if _, err := io.WriteString(conn, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-entered
	}
	eventually(t, "they are not at work", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.idle.Len()+w.proxied.Len() == 0 })
	answer := make(chan error, 1)
	waiting := w.dial(5)
	go func() {
		_, err := ask(waiting)
		answer <- err
	}()
	select {
	case err := <-answer:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(20 * time.Millisecond): // it cannot be seen to wait for good
	}
	close(release)
	if err := <-answer; err != nil {
		t.Error(err)
	}
	if n := w.metric("intumwa_http_connections_max", ""); n != 3 {
		t.Errorf("the most is %v", n)
	}
}

// A client that does not read its answer is let go long before the answer's
// whole time is over; one that reads slowly is not.
func TestStalledReaderIsLetGo(t *testing.T) {
	const answer = 16 << 20
	ended := make(chan error, 2)
	w := openDoor(t, 10, 0, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(make([]byte, answer))
		ended <- err
	}), func(d *door) { d.stall = 2 * time.Second })
	conn := w.dial(2)
	shrink(t, conn)
	start := time.Now()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	eventually(t, "its connection stays", func() bool { return w.metric("intumwa_http_connections_open", "") == 0 })
	if n := w.dropped(dropStalled); n != 1 {
		t.Errorf("%v were dropped", n)
	}
	slow := w.dial(3)
	_, _ = io.WriteString(slow, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	start = time.Now()
	read := 0
	for buffer := make([]byte, 64<<10); read < answer; time.Sleep(4 * time.Millisecond) { // slowly
		n, err := slow.Read(buffer)
		if err != nil {
			t.Fatalf("after %d octets: %v", read, err)
		}
		read += n
	}
	if err := <-ended; err != nil || w.dropped(dropStalled) != 1 {
		t.Errorf("the slow reader was let go after %v: %v", time.Since(start), err)
	}
}

// shrink makes the sockets' buffers small on this side.
func shrink(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) }); err != nil {
		t.Fatal(err)
	}
}

// TestFraming: what may be read in two ways is refused, on raw sockets; what may
// not is taken, and the connection goes on.
func TestFraming(t *testing.T) {
	w := openDoor(t, 100, 0, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, "[%s %s]", r.URL.Path, body)
	}), nil)
	const end = "\r\n\r\n"
	request := func(lines ...string) string {
		return "POST /a HTTP/1.1\r\nHost: x\r\n" + strings.Join(lines, "\r\n") + end
	}
	const next = "GET /b HTTP/1.1\r\nHost: x\r\nConnection: close" + end
	for _, c := range []struct {
		name, octets string
		status       string
		bodies       string // of all answers
	}{
		{"length", request("Content-Length: 3") + "abc" + next, "200", "[/a abc][/b ]"},
		{"no body", request("A: b") + next, "200", "[/a ][/b ]"},
		{"length 0", request("Content-Length: 0") + next, "200", "[/a ][/b ]"},
		{"chunks", request("Transfer-Encoding: chunked") + "3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n" + next, "200", "[/a abcd][/b ]"},
		{"chunks, another case", request("tRANSFER-eNCODING:  CHUNKED ") + "A\r\n0123456789\r\n00\r\n\r\n" + next, "200", "[/a 0123456789][/b ]"},
		{"chunks with a trailer", request("Transfer-Encoding: chunked", "Trailer: X") + "3\r\nabc\r\n0\r\nX: y\r\n\r\n" + next, "200", "[/a abc][/b ]"},
		{"lines end in LF", strings.ReplaceAll(request("Content-Length: 3")+"abc"+next, "\r", ""), "200", "[/a abc][/b ]"},
		{"a body like a head", request("Content-Length: 45") + "\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\n\r\n" + next, "200", "[/a \r\nContent-Length: 5\r\nTransfer-Encoding: x\r\n\r\n][/b ]"},
		{"a chunk like a head", request("Transfer-Encoding: chunked") + "16\r\nContent-Length: 5\r\n\r\na\r\n0\r\n\r\n" + next, "200", "[/a Content-Length: 5\r\n\r\na][/b ]"},
		{"a long header", request("X: "+strings.Repeat("Content-Length: 5 ", 200), "Content-Length: 3") + "abc" + next, "200", "[/a abc][/b ]"},
		{"a long path", "POST /" + strings.Repeat("x", 1000) + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked" + end + "0\r\n\r\n" + next, "200", ""},
		{"HTTP/1.0", "POST /a HTTP/1.0\r\nContent-Length: 3" + end + "abc", "200", "[/a abc]"},
		{"an empty line between", request("Content-Length: 3") + "abc\r\n" + next, "200", "[/a abc][/b ]"},

		{"both", request("Content-Length: 3", "Transfer-Encoding: chunked") + "0\r\n\r\n" + next, "400", ""},
		{"both, the other way round", request("Transfer-Encoding: chunked", "Content-Length: 5") + "0\r\n\r\n" + next, "400", ""},
		{"both, in odd cases", request("content-LENGTH:5", "TRANSFER-encoding:chunked") + "0\r\n\r\n" + next, "400", ""},
		{"both, length 0", request("Content-Length: 0", "Transfer-Encoding: chunked") + "0\r\n\r\n" + next, "400", ""},
		{"both, in the second request", request("Content-Length: 0") + request("Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n", "400", ""},
		{"both, after chunks", request("Transfer-Encoding: chunked") + "1\r\na\r\n0\r\n\r\n" + request("Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n", "400", ""},
		{"both, lines end in LF", strings.ReplaceAll(request("Content-Length: 3", "Transfer-Encoding: chunked")+"0\r\n\r\n", "\r", ""), "400", ""},
		{"length twice", request("Content-Length: 3", "Content-Length: 4") + "abc" + next, "400", ""},
		{"length twice, the same", request("Content-Length: 3", "Content-Length: 3") + "abc" + next, "400", ""},
		{"length as a list", request("Content-Length: 3, 3") + "abc" + next, "400", ""},
		{"length +3", request("Content-Length: +3") + "abc" + next, "400", ""},
		{"length -3", request("Content-Length: -3") + "abc" + next, "400", ""},
		{"length 0x3", request("Content-Length: 0x3") + "abc" + next, "400", ""},
		{"no length", request("Content-Length:") + next, "400", ""},
		{"huge length", request("Content-Length: 99999999999999999999") + "abc" + next, "400", ""},
		{"a space before the colon", request("Content-Length : 3") + "abc" + next, "400", ""},
		{"encoding with a space before the colon", request("Transfer-Encoding : chunked") + "0\r\n\r\n" + next, "400", ""},
		{"folded encoding", request("Transfer-Encoding:\r\n chunked") + "0\r\n\r\n" + next, "400", ""},
		{"folded length", request("Content-Length:\r\n\t3") + "abc" + next, "400", ""},
		{"folded header", request("X: a\r\n Content-Length: 3", "Content-Length: 3") + "abc" + next, "400", ""},
		{"chunked twice", request("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + "0\r\n\r\n" + next, "501", ""},
		{"chunked twice in one", request("Transfer-Encoding: chunked, chunked") + "0\r\n\r\n" + next, "501", ""},
		{"another encoding", request("Transfer-Encoding: gzip, chunked") + "0\r\n\r\n" + next, "501", ""},
		{"identity", request("Transfer-Encoding: identity") + next, "501", ""},
		{"encoding of control characters", request("Transfer-Encoding: \x0bchunked") + "0\r\n\r\n" + next, "400", ""},
		{"encoding in HTTP/1.0", "POST /a HTTP/1.0\r\nContent-Length: 3\r\nTransfer-Encoding: chunked" + end + "abc", "400", ""},
		{"encoding in HTTP/1.0 alone", "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked" + end + "0\r\n\r\n", "400", ""},
		{"a chunk's size is no number", request("Transfer-Encoding: chunked") + "x\r\n" + next, "400", ""},
		{"a chunk's size is huge", request("Transfer-Encoding: chunked") + "fffffffffffffffff\r\n" + next, "400", ""},
		{"a chunk is longer than it says", request("Transfer-Encoding: chunked") + "1\r\nabc\r\n0\r\n\r\n" + next, "400", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := w.dial(2)
			if _, err := io.WriteString(conn, c.octets); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			reader := bufio.NewReader(conn)
			var bodies strings.Builder
			var statuses []string
			for {
				answer, err := http.ReadResponse(reader, nil)
				if err != nil {
					break
				}
				statuses = append(statuses, fmt.Sprint(answer.StatusCode))
				body, _ := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if answer.StatusCode == 200 {
					bodies.Write(body)
				}
			}
			if len(statuses) == 0 || statuses[0] != c.status || c.status != "200" && (len(statuses) > 1 || bodies.Len() > 0) ||
				c.bodies != "" && bodies.String() != c.bodies {
				t.Errorf("%v %q, want %s %q", statuses, &bodies, c.status, c.bodies)
			}
		})
	}
	if w.dropped(dropFraming) == 0 {
		t.Error("none is counted")
	}
}

// However the octets are cut, the same is seen in them, and no line of any
// length takes memory.
func TestFramingHoweverCut(t *testing.T) {
	words := rapid.SampledFrom([]string{"POST /a HTTP/1.1\r\n", "GET / HTTP/1.0\n", "Content-Length: 3\r\n", "Content-Length:x\r\n", "Transfer-Encoding: chunked\r\n",
		"\r\n", "\n", "abc", "3\r\nabc\r\n", "0\r\n", "X: y\r\n", " folded\r\n", strings.Repeat("long", 300), "\x00:\xff"})
	rapid.Check(t, func(t *rapid.T) {
		octets := []byte(strings.Join(rapid.SliceOf(words).Draw(t, "words"), ""))
		var whole, cut framing
		whole.feed(octets)
		for rest := octets; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			cut.feed(rest[:n])
			rest = rest[n:]
		}
		if whole.doubtful.Load() != cut.doubtful.Load() || whole.part != cut.part || whole.left != cut.left || !bytes.Equal(whole.line, cut.line) {
			t.Fatalf("whole: %v %d %d %q; cut: %v %d %d %q", whole.doubtful.Load(), whole.part, whole.left, whole.line, cut.doubtful.Load(), cut.part, cut.left, cut.line)
		}
		if len(whole.line) > maxLine || cap(cut.line) > 8*maxLine {
			t.Fatalf("%d and %d octets are kept", len(whole.line), cap(cut.line))
		}
	})
}
