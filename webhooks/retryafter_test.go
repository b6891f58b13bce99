package webhooks

import (
	"net"
	"net/http"
	"testing"
	"time"
)

func TestReadRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                               0,
		"0":                              0,
		"20":                             20 * time.Second,
		"2.0":                            2 * time.Second, // Shopify
		"-5":                             0,
		"NaN":                            0,
		"Inf":                            maxRetryAfter,
		"99999999999999999999":           maxRetryAfter,
		"later":                          0,
		"Mon, 04 May 2026 12:01:00 GMT":  time.Minute,
		"Monday, 04-May-26 12:01:00 GMT": time.Minute,
		"Mon May  4 12:01:00 2026":       time.Minute,
		"Mon, 04 May 2026 11:00:00 GMT":  0,
		"Mon, 04 May 9999 12:01:00 GMT":  maxRetryAfter,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

// TestRetryAfterOfAnswers: any failure may say when to call again, whatever its status.
func TestRetryAfterOfAnswers(t *testing.T) {
	for answer, want := range map[string]time.Duration{
		"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 20\r\nContent-Length: 0\r\n\r\n":     20 * time.Second,
		"HTTP/1.1 503 No\r\nretry-after:20\r\nContent-Length: 0\r\n\r\n":                     20 * time.Second,
		"HTTP/1.1 403 No\r\nRetry-After: 20\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n": 30 * time.Second,
		"HTTP/1.1 302 Found\r\nLocation: /\r\nRetry-After: 20\r\nContent-Length: 0\r\n\r\n":  20 * time.Second,
		"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n":                                       0,
		"HTTP/1.1 103 Early Hints\r\nRetry-After: 20\r\n\r\nHTTP/1.1 500 No\r\n\r\n":         0,
		"HTTP/1.1 503 No\r\nRetry-After: 20\r\nno colon\r\nContent-Length: x\r\n\r\n":        20 * time.Second,
	} {
		url, _ := endpoint(t, func(c net.Conn) { say(c, answer) })
		if a := attempt(t, quickly(), url); a.retryAfter != want {
			t.Errorf("%q: %s, want %s", answer, a.retryAfter, want)
		}
	}
}

// TestRetryAfterDelaysTheNextAttempt: the stored time of the next attempt heeds Retry-After.
func TestRetryAfterDelaysTheNextAttempt(t *testing.T) {
	opts := quickly()
	opts.RetryDelays = []time.Duration{time.Minute, 10 * time.Minute}
	w := New(batchPool(t), opts)
	s := newSink(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", "300")
		rw.WriteHeader(http.StatusServiceUnavailable)
	})
	setEndpoint(t, w, 1, s.URL)
	run(t, w)
	enqueue(t, w, 1, 1, 1)
	w.Kick()
	eventually(t, "an attempt stored", func() bool { return len(only(t, w, 1).Attempts) == 1 })
	d := only(t, w, 1)
	if wait := d.NextAt.Sub(d.Attempts[0].At); wait < 300*time.Second || wait > 300*time.Second+patience {
		t.Errorf("the next attempt is %s later, want 5 minutes", wait)
	}
}
