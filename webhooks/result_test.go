package webhooks

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func status(code int) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) }
}

// TestResults calls every kind of bad receiver once.
func TestResults(t *testing.T) {
	var inside atomic.Int64
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	t.Cleanup(private.Close)

	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	if _, err := io.CopyN(zip, zeroes{}, 64<<20); err != nil {
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
		"200":                {status(200), 200, result2xx},
		"201":                {status(201), 201, result2xx},
		"204":                {status(204), 204, result2xx},
		"301 inside":         {http.RedirectHandler(private.URL, http.StatusMovedPermanently).ServeHTTP, 301, result3xx},
		"307 inside":         {http.RedirectHandler(private.URL, http.StatusTemporaryRedirect).ServeHTTP, 307, result3xx},
		"302 to cloud":       {http.RedirectHandler("http://169.254.169.254/", http.StatusFound).ServeHTTP, 302, result3xx},
		"304":                {status(304), 304, result3xx},
		"400":                {status(400), 400, result4xx},
		"404":                {status(404), 404, result4xx},
		"410":                {status(410), 410, result4xx},
		"429":                {status(429), 429, result4xx},
		"500":                {status(500), 500, result5xx},
		"503":                {status(503), 503, result5xx},
		"666":                {status(666), 666, resultOther},
		"hang":               {hang, 0, resultTimeout},
		"200 in drops":       {drops, 200, result2xx},
		"500 in drops":       {func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(500); drops(rw, r) }, 500, result5xx},
		"closes":             {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, resultOther},
		"header without end": {func(rw http.ResponseWriter, _ *http.Request) { rw.Header().Set("X", strings.Repeat("x", 1<<20)) }, 0, resultOther},
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
	opts := quickly().withDefaults()
	hangs := opts // of who answers only in part, or not at all
	hangs.Timeout = 400 * time.Millisecond
	call := func(t *testing.T, opts Options, url string) (Attempt, time.Duration) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := New(nil, opts)
		c := newCaller(ctx, opts, w.guard)
		defer c.close()
		aim, err := w.newTarget(storedEndpoint{url: url, secret: newSecret()})
		if err != nil {
			t.Fatal(err)
		}
		a, took, ok := c.call(aim, &job{id: 8})
		if !ok {
			t.Fatal("cut short")
		}
		if len(a.Excerpt) > excerptBytes {
			t.Errorf("%d octets kept of the answer", len(a.Excerpt))
		}
		if took > opts.Timeout+5*time.Second { // many at once, on a machine that may be busy
			t.Errorf("took %s", took)
		}
		return a, took
	}
	for name, test := range handlers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := opts
			if test.result == resultTimeout || strings.HasSuffix(name, "in drops") {
				opts = hangs
			}
			a, _ := call(t, opts, newSink(t, test.answer).URL)
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
			a, _ := call(t, opts, url)
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
			a, _ := call(t, guarded, url)
			if a.Result != resultBlocked || strings.Contains(a.Error, "127") {
				t.Errorf("%s: %+v", url, a)
			}
		}
	})
	t.Run("proxy", func(t *testing.T) {
		t.Setenv("HTTP_PROXY", private.URL)
		t.Setenv("ALL_PROXY", private.URL)
		call(t, opts, "http://no-such-host.invalid/")
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

func TestResultOfUnknownError(t *testing.T) {
	if result, text := resultOfError(errors.New("tcp 10.0.0.1: strange")); result != resultOther || strings.Contains(text, "10.0") {
		t.Errorf("%s, %s", result, text)
	}
}

// TestAnswersKeepConnections: an answer that fits is read, and its connection used again.
func TestAnswersKeepConnections(t *testing.T) {
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write(make([]byte, 60<<10))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	opts := quickly().withDefaults()
	w := New(nil, opts)
	c := newCaller(t.Context(), opts, w.guard)
	defer c.close()
	aim, err := w.newTarget(storedEndpoint{url: s.URL, secret: newSecret()})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if a, _, ok := c.call(aim, &job{id: 8}); !ok || a.Status != 200 {
			t.Fatalf("%+v", a)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for 10 calls", n)
	}
}

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func drops(rw http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		if _, err := rw.Write([]byte(".")); err != nil {
			return
		}
		_ = http.NewResponseController(rw).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// speaks is a server of another protocol: it says its greeting and then nothing.
func speaks(t *testing.T, greeting string) string {
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
			t.Cleanup(func() { _ = conn.Close() })
			_, _ = io.WriteString(conn, greeting)
		}
	}()
	return "http://" + l.Addr().String()
}

func selfSigned(t *testing.T) string {
	s := httptest.NewUnstartedServer(status(200))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}
