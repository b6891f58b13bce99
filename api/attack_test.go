package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"

	"intumwa/sms"
)

// manyNames returns a template with n placeholders, and a recipient's variables for them, each a number.
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

// A 422 lists at most 2,000 failing fields and counts the others under its last key.
func TestListedErrorsAreBounded(t *testing.T) {
	a := &API{opts: Options{Plan: sms.NewPlan("7")}}
	template, variables := manyNames(100) // 600 characters
	name := strings.Repeat("n", 596)      // echoed twice for each recipient
	request := func(template, variables string) string {
		recipient := `{"phone_number":"79123456","variables":` + variables + `}`
		return `{"sender":"ACME","template":"` + template + `","recipients":[` + strings.Repeat(recipient+",", 499) +
			recipient + `]}`
	}
	for _, c := range []struct {
		name, body string
		bulk       bool
		listed     int
		more       string
	}{
		{"48,000 more", request(template, variables), false, 2001,
			`,"more":["There are 48000 further fields that are not listed."]}`},
		{"variables of a template that is too long", request(template+"x", variables), false, 1,
			`{"template":["The template field must not exceed 600 characters."]}`},
		{"long names", request("{{"+name+"}}", `{"`+name+`":1}`), false, 500, ""},
		{"a bulk of 500 with both fields wrong", `{"messages":[` + strings.Repeat("{},", 499) + `{}]}`, true, 1001, ""},
	} {
		root, _ := parse(c.body)
		var p problems
		if c.bulk {
			_, p = a.readBulk(root.fields())
		} else {
			_, p = a.readTemplate(root.fields())
		}
		text, err := json.Marshal(p)
		var listed map[string][]string
		if err == nil {
			err = json.Unmarshal(text, &listed)
		}
		for _, texts := range listed {
			provoke([]byte(messageJSON(texts[0])))
		}
		if err != nil || len(listed) != c.listed || len(text) > 1<<20 || !strings.HasSuffix(string(text), c.more) {
			t.Errorf("%s: %d fields, %d bytes, %v", c.name, len(listed), len(text), err)
		}
	}
}

// Failing fields are bounded in bytes too, however long their names are.
func TestListedErrorsAreBoundedInBytes(t *testing.T) {
	var p problems
	for i := range 5000 {
		p.item = i
		p.addNamed(recipientVariableText, strings.Repeat("n", 5000))
	}
	text, err := json.Marshal(p)
	if err != nil || len(text) > maxListedBytes+64<<10 || p.more+len(p.listed) != 5000 {
		t.Errorf("%d bytes, %d listed, %d more, %v", len(text), len(p.listed), p.more, err)
	}
	var few problems
	few.add(&refusal{field: "a", text: strings.Repeat("x", maxListedBytes+1)}) // longer than the whole list may be
	if few.none() {
		t.Error("nothing is wrong")
	}
}

// Clients that announce large bodies and send them slowly take no memory from others: with 32 such connections of four
// tokens open, a bulk of a fifth customer passes at once.
func TestSlowBodiesTakeNoMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{Options: Options{BodyMemory: 8 << 20, MaxBody: 1 << 20}}).settle()
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
			_, _ = fmt.Fprintf(conn, "POST /v1/sms/bulk HTTP/1.1\r\nHost: x\r\nContent-Type: "+
				"application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n{%s",
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
	if status, text, err := w.post(strings.NewReader(body), "application/json"); err != nil || status != 200 {
		t.Errorf("%d %s %v", status, text, err)
	}
}

// One user gets half of the memory; all users together get all of it.
func TestMemoryIsShared(t *testing.T) {
	m := newMemory(100, newMetrics(nil))
	take := func(user, n int64, want bool) {
		t.Helper()
		if got := m.take(user, n, "body"); got != want {
			t.Errorf("%d bytes for user %d: %v", n, user, got)
		}
	}
	take(1, 40, true)
	take(1, 11, false)
	take(2, 50, true)
	take(3, 11, false)
	take(3, 10, true)
	take(4, 1, false)
	m.release(1, 40)
	take(4, 40, true)
	m.release(2, 50)
	m.release(3, 10)
	m.release(4, 40)
	if m.used != 0 || len(m.users) != 0 {
		t.Errorf("%d bytes are in use, of %d users", m.used, len(m.users))
	}
}

// A text with megabytes of escapes is refused before it is unescaped.
func TestLongEscapes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, worldOptions{}).settle()
	spaces := strings.Repeat(`\u0020`, 100_000)
	got := w.do("live", "POST", "/v1/sms", `{"phone_number":"79123456`+spaces+`x","sender":"`+spaces+`A","message":"`+
		spaces+`x"}`)
	sameJSON(t, got.body, failsFirst("phone_number", numberInvalid.text, "sender", senderInvalid.text, "message",
		messageLong.text))
	if text, ok := value(`"\n` + strings.Repeat("x", 1<<20) + `"`).text(); !ok || len(text) > maxText+8 {
		t.Errorf("%d bytes", len(text))
	}
}

// A panic is logged with its stack and route, without the request's body.
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
	provoke(answer.Body.Bytes())
	for _, want := range []string{"panicHere", "attack_test.go", "route=/v1/sms/:id", "method=POST"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("the log has the body")
	}
}

func panicHere() { panic("something broke") }
