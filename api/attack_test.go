package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"encoding/json"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
)

// manyNames is a template of so many placeholders, and the variables of a
// recipient with a number for each.
func manyNames(n int) (template, variables string) {
	var names, values strings.Builder
	for i := range n {
		fmt.Fprintf(&names, "{{%c%c}}", 'a'+i/26%26, 'a'+i%26)
		if i > 0 {
			values.WriteByte(',')
		}
		fmt.Fprintf(&values, `"%c%c":1`, 'a'+i/26%26, 'a'+i%26)
	}
	return names.String(), "{" + values.String() + "}"
}

func listedErrors(t *testing.T, body string) map[string][]string {
	t.Helper()
	var answer struct{ Errors map[string][]string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Errors
}

// What is wrong is listed up to 2,000 fields; the last key then says how many
// more there are.
func TestListedErrorsAreBounded(t *testing.T) {
	w := newWorld(t, worldOptions{}).settle()
	template, variables := manyNames(100) // 600 characters
	recipient := `{"phone_number":"79123456","variables":` + variables + `}`
	request := func(template string) string {
		return `{"sender":"ACME","template":"` + template + `","recipients":[` + strings.Repeat(recipient+",", 499) + recipient + `]}`
	}
	got := w.do("live", "POST", "/v1/sms/template", request(template))
	errs := listedErrors(t, got.body)
	if got.status != 422 || len(errs) != 2001 || len(got.body) > 1<<20 {
		t.Fatalf("status %d, %d fields, %d octets", got.status, len(errs), len(got.body))
	}
	if more := errs["more"]; !slices.Equal(more, []string{"There are 48000 further fields that are not listed."}) {
		t.Errorf("more: %q", more)
	}
	if !strings.HasSuffix(got.body, `,"more":["There are 48000 further fields that are not listed."]}}`) {
		t.Error("more is not the last")
	}
	// One character more, and the variables are not looked at.
	got = w.do("live", "POST", "/v1/sms/template", request(template+"x"))
	if errs := listedErrors(t, got.body); got.status != 422 || len(errs) != 1 || errs["template"] == nil {
		t.Errorf("status %d, %d fields", got.status, len(errs))
	}
	// Long names are echoed twice each, and still within a bound.
	name := strings.Repeat("n", 596)
	got = w.do("live", "POST", "/v1/sms/template", strings.ReplaceAll(request("{{"+name+"}}"), variables, `{"`+name+`":1}`))
	if n := len(listedErrors(t, got.body)); got.status != 422 || n != 500 || len(got.body) > 1<<20 {
		t.Errorf("status %d, %d fields, %d octets", got.status, n, len(got.body))
	}
	// A bulk of 500 with both fields wrong is listed whole.
	got = w.do("live", "POST", "/v1/sms/bulk", `{"messages":[`+strings.Repeat("{},", 499)+`{}]}`)
	if errs := listedErrors(t, got.body); got.status != 422 || len(errs) != 1001 || errs["more"] != nil {
		t.Errorf("status %d, %d fields", got.status, len(errs))
	}
}

// The list is bounded in octets too, whatever the fields are called.
func TestProblemsAreBoundedInOctets(t *testing.T) {
	var p problems
	for i := range 5000 {
		p.addItem(recipientVariableText, "recipients", i, strings.Repeat("n", 5000))
	}
	text, err := json.Marshal(p)
	if err != nil || len(text) > maxListedOctets+64<<10 || p.more+len(p.listed) != 5000 {
		t.Errorf("%d octets, %d listed, %d more, %v", len(text), len(p.listed), p.more, err)
	}
	var few problems
	few.add(&refusal{field: "a", text: strings.Repeat("x", maxListedOctets+1)}) // not even one has room
	if few.none() {
		t.Error("nothing is wrong")
	}
}

// Bodies that are promised and dripped take nothing from the others: 32 sockets
// of four tokens, and a bulk of a fifth customer goes through at once.
func TestDrippedBodiesTakeNoPlace(t *testing.T) {
	w := newWorld(t, worldOptions{Options: Options{MaxLargeBodies: 4, BodyMemory: 8 << 20, MaxBody: 1 << 20}}).settle()
	for i := range 4 {
		w.customer(fmt.Sprint("dripper", i), nil)
	}
	var conns sync.WaitGroup
	stop := make(chan struct{})
	started := make(chan struct{}, 32)
	for i := range 32 {
		conns.Go(func() {
			conn := w.dial()
			defer conn.Close()
			_, _ = fmt.Fprintf(conn, "POST /v1/sms/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n{%s",
				w.tokens[fmt.Sprint("dripper", i%4)], 1<<20, strings.Repeat(" ", 70<<10)) // past the large mark
			started <- struct{}{}
			<-stop
		})
	}
	defer conns.Wait()
	defer close(stop)
	for range 32 {
		<-started
	}
	body := bulk("ACME", item("79123456", "x"))
	body += strings.Repeat(" ", 500<<10)
	for range 20 {
		start := time.Now()
		status, text, err := w.post(strings.NewReader(body), "application/json")
		if err != nil || status != 200 || time.Since(start) > 5*time.Second {
			t.Fatalf("after %v: %d %s %v", time.Since(start), status, text, err)
		}
	}
}

// Whoever holds most gives way; the body that is there is not interrupted.
func TestMemoryGivesWay(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMemory(100, newMetrics(registry))
	told := map[string]chan struct{}{}
	open := func(name string, user, octets int64) *reservation {
		told[name] = make(chan struct{})
		h := m.reserve(user, "body", func() { close(told[name]) })
		if err := h.resize(t.Context(), octets); err != nil {
			t.Fatal(name, err)
		}
		return h
	}
	gaveWay := func(name string) bool {
		select {
		case <-told[name]:
			return true
		default:
			return false
		}
	}
	first := open("first", 1, 30)
	kept := open("kept", 1, 30)
	second := open("second", 1, 20)
	other := open("other", 2, 20)
	if !kept.makePermanent() {
		t.Fatal("kept was told to give way")
	}
	done := make(chan error)
	go func() { done <- other.resize(t.Context(), 40) }()
	<-told["second"] // the latest of user 1, who holds most; kept cannot any more
	if gaveWay("first") || gaveWay("kept") || gaveWay("other") {
		t.Error("another had to give way as well")
	}
	if err := second.resize(t.Context(), 21); !errors.Is(err, errNoSlot) || second.makePermanent() {
		t.Errorf("it goes on: %v", err)
	}
	second.close()
	second.close()
	if err := <-done; err != nil || gaveWay("first") {
		t.Errorf("the other: %v", err)
	}
	// The one that holds most waits itself until there is room.
	go func() { done <- first.resize(t.Context(), 50) }()
	kept.close()
	if err := <-done; err != nil || gaveWay("other") {
		t.Errorf("the first: %v", err)
	}
	first.close()
	other.close()
	if m.held != 0 || m.beingFreed != 0 || len(m.reservations) != 0 {
		t.Errorf("%d held, %d leaving, %d shares", m.held, m.beingFreed, len(m.reservations))
	}
}

// Who is slow gives way before who holds most, and nobody does without want.
func TestTheSlowGiveWayFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(1000<<10, newMetrics(nil))
		var told []string
		open := func(name string, user, octets, moved int64) *reservation {
			h := m.reserve(user, "body", func() { told = append(told, name) })
			h.transferred.Store(moved)
			if err := h.resize(t.Context(), octets); err != nil {
				t.Fatal(name, err)
			}
			return h
		}
		slow := open("slow", 1, 100<<10, 100<<10)
		slower := open("slower", 2, 100<<10, 10<<10)
		big := open("big", 3, 800<<10, 800<<10)
		time.Sleep(2 * minRateAfter)
		if len(told) > 0 {
			t.Errorf("%v gave way to nobody", told)
		}
		late := m.reserve(4, "body", func() { told = append(told, "late") })
		done := make(chan error)
		for i, each := range []struct {
			name string
			hold *reservation
		}{{"slower", slower}, {"slow", slow}, {"big", big}} {
			go func() { done <- late.resize(t.Context(), int64(i+1)*100<<10) }()
			synctest.Wait()
			if len(told) != i+1 || told[i] != each.name {
				t.Fatalf("%v gave way, want %s", told, each.name)
			}
			each.hold.close()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		late.close()
	})
}

// Who waits for memory in vain is told so after placeWait.
func TestNoMemoryComesFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(100, newMetrics(nil))
		busy := m.reserve(1, "body", func() {})
		if err := busy.resize(t.Context(), 100); err != nil || !busy.makePermanent() {
			t.Fatal(err)
		}
		start := time.Now()
		h := m.reserve(2, "body", func() {})
		if err := h.resize(t.Context(), 1); !errors.Is(err, errNoSlot) || time.Since(start) != slotWait {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.resize(ctx, 1); !errors.Is(err, errNoSlot) || time.Since(start) != slotWait+time.Second {
			t.Errorf("gone after %v: %v", time.Since(start), err)
		}
		busy.close()
		if err := h.resize(t.Context(), 1); err != nil {
			t.Error(err)
		}
		h.close()
	})
}

// An answer that is not read gives way to a body, and its connection ends.
func TestUnreadAnswerGivesWay(t *testing.T) {
	const most = 1 << 20
	m := newMemory(most, newMetrics(nil))
	ended := make(chan error, 1)
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	held := make(chan struct{})
	r.GET("/", func(c *gin.Context) {
		control := http.NewResponseController(c.Writer)
		h := m.reserve(1, "answer", func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })
		defer h.close()
		if err := h.resize(c.Request.Context(), most); err != nil {
			ended <- err
			return
		}
		close(held)
		_, err := io.Copy(c.Writer, endless{}) // more than the sockets take
		ended <- err
	})
	server := httptest.NewServer(r)
	defer server.Close()
	w := &world{t: t, server: server}
	conn := w.dial()
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-held
	h := m.reserve(2, "body", func() {})
	defer h.close()
	if err := h.resize(t.Context(), 1000); err != nil {
		t.Errorf("the body has no room: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the answer went on")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A text of megabytes in escapes is refused without being unescaped whole.
func TestLongEscapes(t *testing.T) {
	w := newWorld(t, worldOptions{}).settle()
	spaces := strings.Repeat(`\u0020`, 100_000)
	got := w.do("live", "POST", "/v1/sms", `{"phone_number":"79123456`+spaces+`x","sender":"`+spaces+`A","message":"`+spaces+`x"}`)
	sameJSON(t, got.body, failsFirst("phone_number", numberInvalid.text, "sender", senderInvalid.text, "message", messageLong.text))
	if text, ok := value(`"\n` + strings.Repeat("x", 1<<20) + `"`).text(); !ok || len(text) > maxText+8 {
		t.Errorf("%d octets", len(text))
	}
}

// A panic is logged with its stack and its route, and without the body.
func TestPanicIsLoggedWithItsStack(t *testing.T) {
	var log bytes.Buffer
	a := &API{opts: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, metrics: newMetrics(nil)}
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(a.observe, a.recover)
	r.POST("/v1/sms/:id", func(*gin.Context) { panicHere() })
	answer := httptest.NewRecorder()
	r.ServeHTTP(answer, httptest.NewRequest("POST", "/v1/sms/5", strings.NewReader("a secret text")))
	if answer.Code != 500 || answer.Body.String() != messageJSON("Server error.") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	for _, want := range []string{"panicHere", "attack_test.go", "route=/v1/sms/:id", "method=POST"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not tell %q:\n%s", want, &log)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("the log tells the body")
	}
}

func panicHere() { panic("something broke") }
