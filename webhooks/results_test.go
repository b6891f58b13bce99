package webhooks

import (
	"bytes"
	"compress/gzip"
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
		for _, url := range []string{private.URL, "https://127.0.0.1/", "https://localhost/", "https://[::1]/",
			"https://10.0.0.1/", "https://169.254.169.254/"} {
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

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.octets.Add(int64(n))
	return n, err
}

func TestResultOfUnknownError(t *testing.T) {
	if result, text := resultOfError(errors.New("tcp 10.0.0.1: strange")); result != resultOther ||
		strings.Contains(text, "10.0") {
		t.Errorf("%s, %s", result, text)
	}
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
