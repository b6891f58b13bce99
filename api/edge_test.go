package api

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/intake"
	"intumwa/internal/testenv"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// raw sends bytes and returns the response, up to the end of the connection.
func (w *world) raw(text string) string {
	w.t.Helper()
	return w.rawTo(w.server.Listener.Addr(), text)
}

func (w *world) rawTo(address net.Addr, text string) string {
	w.t.Helper()
	conn, err := net.Dial("tcp", address.String())
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		w.t.Fatal(err)
	}
	out, err := io.ReadAll(conn)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(out)
}

// dial opens a connection to the server.
func (w *world) dial() net.Conn {
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	if err != nil {
		w.t.Error(err)
		panic(err)
	}
	return conn
}

// stream is a body of unannounced length.
type stream struct{ io.Reader }

func (w *world) post(body io.Reader, contentType string) (status int, text string, err error) {
	req, err := http.NewRequest("POST", w.server.URL+"/v1/sms/bulk", body)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Authorization", "Bearer "+w.tokens["live"])
	resp, err := w.server.Client().Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(out), err
}

func TestBodyLimits(t *testing.T) {
	t.Parallel()
	const most = 256 << 10
	w := newWorld(t, worldOptions{Options: Options{MaxBody: most}}).settle()
	pad := func(n int) string {
		body := bulk("ACME", item("79123456", "x"))
		return body + strings.Repeat(" ", n-len(body))
	}
	tooLarge, notJSON := messageJSON("The request body is too large."),
		messageJSON("The Content-Type must be application/json.")
	for _, c := range []struct {
		name, kind string
		body       io.Reader
		status     int
		want       string
	}{
		{"small", "application/json", strings.NewReader(pad(1000)), 200, ""},
		{"small stream", "application/json", stream{strings.NewReader(pad(1000))}, 200, ""},
		{"at the large mark", "application/json", strings.NewReader(pad(64 << 10)), 200, ""},
		{"stream at the large mark", "application/json", stream{strings.NewReader(pad(64 << 10))}, 200, ""},
		{"past the large mark", "application/json", strings.NewReader(pad(64<<10 + 1)), 200, ""},
		{"stream past the large mark", "application/json", stream{strings.NewReader(pad(64<<10 + 1))}, 200, ""},
		{"the largest", "application/json", strings.NewReader(pad(most)), 200, ""},
		{"the largest stream", "application/json; charset=utf-8", stream{strings.NewReader(pad(most))}, 200, ""},
		{"too large", "application/json", strings.NewReader(pad(most + 1)), 413, tooLarge},
		{"stream too large", "application/json", stream{strings.NewReader(pad(most + 1))}, 413, tooLarge},
		{"far too large", "application/json", strings.NewReader(pad(most + most/2)), 413, tooLarge},
		{"too large and no JSON", "text/plain", strings.NewReader(pad(most + 1)), 413, tooLarge},
		{"stream too large and no JSON", "text/plain", stream{strings.NewReader(pad(most + 1))}, 413, tooLarge},
		{"no JSON", "text/plain", strings.NewReader("{"), 415, notJSON},
		{"stream of no JSON", "", stream{strings.NewReader("{")}, 415, notJSON},
		{"form", "application/x-www-form-urlencoded", strings.NewReader("a=b"), 415, notJSON},
		{"its own JSON", "application/vnd.acme+json", strings.NewReader(pad(1000)), 200, ""},
		{"parameters of a sample", "application/json; utf-8", strings.NewReader(pad(1000)), 200, ""},
		{"a comma", "application/json, charset=utf-8", strings.NewReader(pad(1000)), 200, ""},
		{"an old name", "text/json;charset=UTF-8;", strings.NewReader(pad(1000)), 200, ""},
		{"a name that begins so", "application/jsonp", strings.NewReader("{}"), 415, notJSON},
		{"another case", "Application/JSON", strings.NewReader(pad(1000)), 200, ""},
		{"empty", "application/json", strings.NewReader(""), 400, messageJSON("The request body is not valid JSON.")},
	} {
		status, text, err := w.post(c.body, c.kind)
		provoke([]byte(text))
		if err != nil || status != c.status || c.want != "" && text != c.want {
			t.Errorf("%s: %d %s %v", c.name, status, text, err)
		}
	}
}

// TestCharsets: a body that is not UTF-8 is read in the charset that its Content-Type names, or refused with the
// reason.
func TestCharsets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	notUTF8 := messageJSON("The request body is not valid JSON: it is not encoded in UTF-8.")
	for _, c := range []struct{ kind, text, want string }{
		{"application/json; charset=iso-8859-1", "caf\xe9", "café"},
		{`application/json; charset="ISO-8859-1"`, "caf\xe9", "café"},
		{"application/json;charset=windows-1252", "l\x92eau", "l’eau"},
		{"application/json; charset=iso-8859-15", "5\xa4", "5€"},
		{"application/json; charset=iso-8859-1", "café", "café"}, // JSON is UTF-8
		{"application/json", "caf\xe9", ""},
		{"application/json; charset=utf-8", "caf\xe9", ""},
		{"application/json; charset=koi8-r", "\xc1", ""},
		{"application/json; charset=windows-1252", "\x81", ""}, // stands for nothing
	} {
		status, text,
			err := w.post(strings.NewReader(strings.Replace(bulk("ACME", item("79123456", "TEXT")), "TEXT", c.text, 1)), c.kind)
		provoke([]byte(text))
		switch {
		case err != nil:
			t.Error(err)
		case c.want == "":
			if status != 400 || text != notUTF8 {
				t.Errorf("%q in %s: %d %s", c.text, c.kind, status, text)
			}
		case status != 200 || w.count(`SELECT count(*) FROM messages WHERE body = '`+c.want+`'`) == 0:
			t.Errorf("%q in %s: %d %s", c.text, c.kind, status, text)
		}
	}
}

// TestHead: HEAD is where GET is, with its status and headers, and needs the same token.
func TestHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	for path, status := range map[string]int{"/v1/balance": 200, "/v1/sms": 200, "/docs": 200, "/v1/openapi.json": 200,
		"/v1/sms/bulk": 405, "/v1/verifications": 405} {
		like := w.do("live", "GET", path, "")
		for token, want := range map[string]int{w.tokens["live"]: status, "none": max(status, 401)} {
			req, err := http.NewRequest("HEAD", w.server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			got, err := w.server.Client().Do(req)
			if err != nil || got.Body.Close() != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(path, "/v1/") || path == "/v1/openapi.json" || status > 404 {
				want = status
			}
			if got.StatusCode != want || like.status != status || got.Header.Get("Content-Type") != like.header.Get(
				"Content-Type") {
				t.Errorf("%s: %d, want %d; GET %d", path, got.StatusCode, want, like.status)
			}
		}
	}
}

// A body without memory for it is refused and not read on; single messages always find some.
func TestBodiesShareTheMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Options: Options{MaxBody: 1 << 20, BodyMemory: 128 << 10}}).settle()
	large := bulk("ACME", item("79123456", "x")) + strings.Repeat(" ", 100<<10)
	got := w.do("live", "POST", "/v1/sms/bulk", large)
	if got.status != 503 || got.header.Get("X-Error-Code") != "unavailable" || got.header.Get("Retry-After") == "" {
		t.Errorf("a body above its user's half: %d %v", got.status, got.header)
	}
	if got := w.do("live", "POST", "/v1/sms/bulk", large[:60<<10]); got.status != 200 {
		t.Errorf("a body within it: %d %s", got.status, got.body)
	}
	w.sent("live", single("79123456", "ACME", "x"))
}

// A body that does not arrive in time gets 408, and its memory is released.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Options: Options{BodyMemory: 1 << 20}}).settle()
	slow := &http.Server{Handler: w.handler, ReadTimeout: 300 * time.Millisecond,
		ReadHeaderTimeout: 2 * time.Second}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = slow.Serve(listener) })
	defer serving.Wait()
	defer func() { _ = slow.Close() }()
	head := "POST /v1/sms/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
		w.tokens["live"] + "\r\nContent-Length: 100000\r\n"
	for range 3 {
		if got := w.rawTo(listener.Addr(), head+"\r\n{"); !contains(got, " 408 ") || !contains(got, "took too long") ||
			!contains(got, "\r\nX-RateLimit-Remaining: ") || !contains(got, "\r\nX-Error-Code: body_too_slow\r\n") {
			t.Errorf("answer %q", got)
		} else if _, body, whole := strings.Cut(got, "\r\n\r\n"); whole {
			provoke([]byte(body))
		}
	}
	if got := w.rawTo(listener.Addr(), head+"X-"); contains(got, " 200 ") { // the header never ends; the connection does
		t.Errorf("answer %q", got)
	}
}

// Without the database the response is 503 with Retry-After; nothing is accepted or charged.
func TestUnreachableDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	if got := w.do("live", "GET", "/v1/balance", ""); got.status != 200 {
		t.Fatal(got.body)
	}
	w.pool.Close()
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/sms", single("79123456", "ACME", "x")}, {"POST", "/v1/sms/bulk", bulk("ACME", item("79123456", "x"))},
		{"GET", "/v1/balance", ""}, {"GET", "/v1/sms", ""},
	} {
		got := w.do("live", c.method, c.path, c.body)
		if got.status != 503 || got.header.Get("Retry-After") == "" || got.header.Get("X-Error-Code") != "unavailable" {
			t.Errorf("%s: %d %v", c.path, got.status, got.header)
		}
		sameJSON(t, got.body, messageJSON("Service unavailable."))
	}
}

// A request whose COMMIT was lost may have been accepted: its 503 has a code of its own.
func TestOutcomeUnknown(t *testing.T) {
	t.Parallel()
	line := &testenv.Line{}
	w := newWorld(t, worldOptions{Line: line}).settle()
	line.LoseAndCut()
	line.OnLost(t, w.end) // intake stops waiting for the outcome
	got := w.do("live", "POST", "/v1/sms", single("79123456", "ACME", "x"))
	if got.status != 503 || got.header.Get("Retry-After") == "" || got.header.Get("X-Error-Code") != "outcome_unknown" {
		t.Errorf("%d %v", got.status, got.header)
	}
	sameJSON(t, got.body, messageJSON("Service unavailable."))
	if credits, err := w.deps.Ledger.Balance(t.Context(), w.company["live"]); err != nil || credits != 999 {
		t.Errorf("%d credits, %v; want 999: it was accepted", credits, err)
	}
}

func TestMessageTooLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Intake: func(o *intake.Options) { o.MaxSegments = 2 }}).settle()
	got := w.do("live", "POST", "/v1/sms", single("79123456", "ACME", long(400)))
	sameJSON(t, got.body, messageJSON("The message is too long."))
}
