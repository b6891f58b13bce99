package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"intumwa/tools/rig"
)

// boundServer is a real server within bounds.
type boundServer struct {
	t       *testing.T
	limits  *bounds
	address string
	log     *bytes.Buffer
}

func serveBound(t *testing.T, most, perAddress int, proxies []string, handler http.HandlerFunc) *boundServer {
	t.Helper()
	w := &boundServer{t: t, log: &bytes.Buffer{}, address: rig.FreeAddress()}
	w.limits = newBounds("test", proxies, slog.New(slog.NewTextHandler(w.log, nil)), prometheus.NewRegistry())
	w.limits.most, w.limits.perAddress = most, perAddress
	ctx, cancel := context.WithCancel(context.Background())
	life := newLife(ctx)
	if err := life.listen(ctx, "bound", w.address, w.limits,
		&http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); life.end() })
	return w
}

// dial connects from a loopback address: 127.0.0.<from>.
func (w *boundServer) dial(from int) net.Conn {
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

// request sends a request, keeps the connection open and returns the status.
func request(conn net.Conn) (status int, err error) {
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, errors.Join(err, response.Body.Close())
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// A host without a token that opens connections without end gets its share. Other hosts and
// the proxies are served, and its connections count until they close.
func TestOneHostGetsItsShareOfConnections(t *testing.T) {
	w := serveBound(t, 100, 10, []string{"127.0.0.9", "127.1.0.0/16"}, hello)
	var held []net.Conn
	for range 150 {
		held = append(held, w.dial(2))
	}
	eventually(t, "140 connections are not refused", func() bool { return testutil.ToFloat64(w.limits.refused) == 140 })
	for _, from := range []int{3, 4, 5} {
		if status, err := request(w.dial(from)); err != nil || status != 200 {
			t.Errorf("host %d: %d, %v", from, status, err)
		}
	}
	for range 20 {
		if status, err := request(w.dial(9)); err != nil || status != 200 {
			t.Errorf("proxy: %d, %v", status, err)
		}
	}
	if lines := strings.Count(w.log.String(), "event=connections_refused"); lines != 1 ||
		!strings.Contains(w.log.String(), "address=127.0.0.2 ") {
		t.Errorf("%d lines: %s", lines, w.log)
	}
	for _, conn := range held {
		_ = conn.Close()
	}
	eventually(t, "closed connections still count", func() bool {
		status, err := request(w.dial(2))
		return err == nil && status == 200
	})
}

// A connection above the total waits and is served when another one ends.
func TestConnectionAboveTheLimitWaits(t *testing.T) {
	release := make(chan struct{})
	var busy sync.WaitGroup
	busy.Add(3)
	w := serveBound(t, 3, 0, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.RemoteAddr[:9] != "127.0.0.5" {
			busy.Done()
			<-release
			w.Header().Set("Connection", "close")
		}
		hello(w, r)
	})
	var requests sync.WaitGroup
	for range 3 {
		conn := w.dial(2)
		requests.Go(func() {
			if status, err := request(conn); err != nil || status != 200 {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
	busy.Wait()
	last := make(chan error, 1)
	conn := w.dial(5)
	go func() {
		_, err := request(conn)
		last <- err
	}()
	if n := testutil.ToFloat64(w.limits.opened); n != 3 {
		t.Errorf("%v connections are open", n)
	}
	close(release)
	requests.Wait()
	if err := <-last; err != nil {
		t.Error(err)
	}
}

func TestEnvironmentTunesTheCollector(t *testing.T) {
	for name, c := range map[string]struct {
		env            map[string]string
		percent, limit int64
	}{
		"nothing set": {nil, 300, memoryLimit},
		"GOGC":        {map[string]string{"GOGC": "50"}, 100, memoryLimit},
		"GOMEMLIMIT":  {map[string]string{"GOMEMLIMIT": "1GiB"}, 300, 1 << 40},
	} {
		percent, limit := collectorAfter(func() { tuneCollector(func(key string) string { return c.env[key] }) })
		if percent != c.percent || limit != c.limit {
			t.Errorf("%s: percent %d, limit %d", name, percent, limit)
		}
	}
}

// collectorAfter returns the collector's settings that change makes from 100 % and 1 TiB,
// and restores them.
func collectorAfter(change func()) (percent, limit int64) {
	percentBefore, limitBefore := debug.SetGCPercent(100), debug.SetMemoryLimit(1<<40)
	change()
	return int64(debug.SetGCPercent(percentBefore)), debug.SetMemoryLimit(limitBefore)
}

// TestBoundsLimitMetric: the metric has the limit that applies, which the alert compares with.
func TestBoundsLimitMetric(t *testing.T) {
	metrics := prometheus.NewRegistry()
	limits := newBounds("test", nil, slog.New(slog.DiscardHandler), metrics)
	limits.most = 7
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = door.Close() }()
	limits.listen(door)
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "intumwa_http_connections_max" && family.Metric[0].Gauge.GetValue() != 7 {
			t.Errorf("it is %v", family.Metric[0].Gauge.GetValue())
		}
	}
}
