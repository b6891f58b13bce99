package carriersim

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func call(t *testing.T, h http.Handler, method, target, body string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func TestPage(t *testing.T) {
	c, addr := serve(t, Options{Name: "lumitel", Seed: 1})
	k := bound(t, addr)
	k.submit(usual("25779000000", "<b>Muraho</b>"))
	says(t, k, "resp ESME_ROK", "receipt DELIVRD")
	h := c.Handler()
	for target, want := range map[string]string{
		"/": "&lt;b&gt;Muraho&lt;/b&gt;", "/messages.json": `"text": "\u003cb\u003eMuraho`, "/submits.json?limit=1": `"validity_period"`,
		"/stats.json": `"accepted": 1`, "/violations.json": "[]", "/sessions.json": "bind_transceiver", "/fates.json": "undeliverable",
		"/faults.json": `"resp_delay": "0s"`,
	} {
		if code, body := call(t, h, "GET", target, ""); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", target, code, body)
		}
	}
	if code, body := call(t, h, "POST", "/faults", `{"submit_status": "ESME_RTHROTTLED", "resp_delay": "5ms", "refuse_ratio": 0}`); code != 200 || !strings.Contains(body, `"resp_delay": "5ms"`) {
		t.Errorf("%d %s", code, body)
	}
	if f := c.CurrentFaults(); f.SubmitStatus != Throttled || f.RespDelay != 5*time.Millisecond {
		t.Errorf("%+v", f)
	}
	for _, bad := range []string{`{"submit_statu": 1}`, `{"resp_delay": "soon"}`, `{"submit_status": "NO"}`, `no`} {
		if code, _ := call(t, h, "POST", "/faults", bad); code != 400 {
			t.Errorf("%s: %d", bad, code)
		}
	}
	if f := c.CurrentFaults(); f.SubmitStatus != Throttled || f.RespDelay != 5*time.Millisecond {
		t.Errorf("a bad body changed %+v", f)
	}
	if code, _ := call(t, h, "POST", "/faults", `{"submit_status": 0, "resp_delay": "0s"}`); code != 200 || c.CurrentFaults() != (Faults{}) {
		t.Errorf("%+v", c.CurrentFaults())
	}
	if code, _ := call(t, h, "POST", "/reset", ""); code != 204 || len(c.Messages()) != 0 {
		t.Error("not reset")
	}
	if code, _ := call(t, h, "POST", "/drop", ""); code != 204 {
		t.Error("not dropped")
	}
	says(t, k, "closed")
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/reset", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if h.ServeHTTP(w, r); w.Code != 403 {
		t.Errorf("from another site: %d", w.Code)
	}
}

func TestFleet(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	type place struct {
		c         *Carrier
		smpp, web net.Addr
	}
	places := make(chan place, 3)
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	defer certificate.Close()
	var endpoints []Endpoint
	for _, name := range []string{"lumitel", "leo", "onatel"} {
		e := Endpoint{
			Carrier: Options{Name: name}, SMPP: "127.0.0.1:0", HTTP: "127.0.0.1:0",
			Listening: func(c *Carrier, smpp, web net.Addr) { places <- place{c, smpp, web} },
		}
		if name == "onatel" {
			e.TLS = certificate.TLS
		}
		endpoints = append(endpoints, e)
	}
	go func() { ended <- RunFleet(ctx, endpoints) }()
	var web string
	for range 3 {
		p := <-places
		web = p.web.String()
		var k *client
		if p.c.Name() == "onatel" {
			conn, err := tls.Dial("tcp", p.smpp.String(), &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			k = &client{t: t, conn: conn}
			k.r = newReader(conn)
			k.bind(9, "demo", "demo")
			k.next()
		} else {
			k = bound(t, p.smpp.String())
		}
		k.submit(usual("25779000000", "hello "+p.c.Name()))
		says(t, k, "resp ESME_ROK", "receipt DELIVRD")
	}
	get := func(path string) string {
		response, err := http.Get("http://" + web + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, _ := io.ReadAll(response.Body)
		return string(body)
	}
	var all map[string][]Message
	if err := json.Unmarshal([]byte(get("/messages.json")), &all); err != nil || len(all) != 3 || all["leo"][0].Text != "hello leo" {
		t.Errorf("%v %+v", err, all)
	}
	if page := get("/"); !strings.Contains(page, "hello onatel") || !strings.Contains(page, "hello lumitel") {
		t.Error(page)
	}
	if one := get("/lumitel/stats.json"); !strings.Contains(one, `"carrier": "lumitel"`) {
		t.Error(one)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestFleetRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	free := Endpoint{Carrier: Options{Name: "a"}, SMPP: "127.0.0.1:0"}
	for name, endpoints := range map[string][]Endpoint{
		"none": nil, "twice": {free, free}, "name": {{Carrier: Options{Name: "A b"}}},
		"taken": {free, {Carrier: Options{Name: "b"}, SMPP: taken.Addr().String()}},
		"page":  {free, {Carrier: Options{Name: "b"}, SMPP: "127.0.0.1:0", HTTP: taken.Addr().String()}},
	} {
		if err := RunFleet(t.Context(), endpoints); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
