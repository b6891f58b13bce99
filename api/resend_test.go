package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// sampleTimeouts are how long each sample waits for an answer, and three seconds
// instead, for the test's sake.
var sampleTimeouts = map[string][2]string{
	"curl": {"--max-time 15", "--max-time 3"}, "php": {"'timeout' => 15,", "'timeout' => 3,"}, "js": {"timeout(15_000)", "timeout(3_000)"},
	"py": {"timeout=15)", "timeout=3)"}, "go": {"15 * time.Second", "3 * time.Second"},
}

// asked is a request as the stub got it.
type sampleRequest struct {
	key, body string
	at        time.Time
}

// stub is a gateway that answers one request after the other as it is told: 0 breaks
// the connection off, 1 does not answer, anything else is a status.
func stub(t *testing.T, statuses ...int) (url string, asked func() []sampleRequest) {
	t.Helper()
	var mu sync.Mutex
	var got []sampleRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		n := len(got)
		got = append(got, sampleRequest{r.Header.Get("Idempotency-Key"), string(body), time.Now()})
		mu.Unlock()
		status := statuses[min(n, len(statuses)-1)]
		w.Header().Set("Content-Type", "application/json")
		switch status {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			<-r.Context().Done()
		case 200:
			_, _ = io.WriteString(w, `{"id":"01JNA2K3M4N5P6Q7R8S9T0V1W2","message":"Message queued for delivery."}`)
		default:
			if status == 429 || status == 503 {
				w.Header().Set("Retry-After", "2")
			}
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"message":"Refused with %d."}`, status)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []sampleRequest {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// What is pasted into production is tried again when that may help, as the same
// request, and not before Retry-After; and a refusal is told at once.
func TestSendSamplesTryAgain(t *testing.T) {
	p, err := newPages(Options{TestSender: testSender}, 500)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.editions["en"].content.Send {
		name := s.Name
		if name == "sh" {
			name = "curl"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := sampleTimeouts[name]
			if !strings.Contains(s.Text, timeout[0]) {
				t.Fatalf("no %q", timeout[0])
			}
			hasty := s
			hasty.Text = strings.Replace(s.Text, timeout[0], timeout[1], 1)
			run := func(s sample, url string) (string, error) {
				file, args := runnable(t, s, nil)
				cmd := exec.Command(args[0], append(args[1:len(args):len(args)], file)...)
				cmd.Env = append(os.Environ(), "BASE_URL="+url, "TOKEN=x", "no_proxy=*")
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			// A connection that breaks off, an answer that does not come, no capacity.
			statuses := []int{0, 1, 503, 200}
			url, asked := stub(t, statuses...)
			out, err := run(hasty, url)
			requests := asked()
			if err != nil || !anyULID.MatchString(out) || len(requests) != len(statuses) {
				t.Fatalf("%v, %d requests: %s", err, len(requests), out)
			}
			for _, each := range requests {
				if each.body != requests[0].body || each.key == "" || each.key != requests[0].key {
					t.Errorf("it is not the same request any more: %+v", requests)
				}
			}
			if waited := requests[len(requests)-1].at.Sub(requests[len(requests)-2].at); waited < 1900*time.Millisecond {
				t.Errorf("it came again after %v, not after Retry-After", waited)
			}
			for _, status := range []int{400, 422} {
				url, asked := stub(t, status)
				out, err := run(s, url)
				if err == nil || !strings.Contains(out, fmt.Sprintf("Refused with %d.", status)) {
					t.Errorf("a %d: %v: %s", status, err, out)
				}
				if n := len(asked()); n != 1 {
					t.Errorf("a %d was tried %d times", status, n)
				}
			}
			if warning := regexp.MustCompile(`(?i)warning|deprecated`).FindString(out); warning != "" {
				t.Errorf("%s: %s", warning, out)
			}
		})
	}
}
