package stories

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/smpp"
	"intumwa/tools/carriersim"
	"intumwa/tools/rig"
)

// passing are errors of PostgreSQL that pass, of each group.
var passing = []string{"08006", "0A000", "25006", "40001", "42501", "53100", "54000", "55000", "57014", "57P01",
	"57P03", "58030", "P0001", "XX000"}

// hot are the tables that a message, a receipt and an MO write to.
var hot = []string{"messages", "segments", "receipts", "outbox", "ledger", "inbound", "inbound_messages", "opt_outs",
	"verifications", "idempotency_keys", "webhook_undelivered"}

// refuses makes every change of the hot tables fail with this SQLSTATE; "": none.
func (w *world) refuses(code string) {
	w.t.Helper()
	raise := ""
	if code != "" {
		raise = `RAISE EXCEPTION 'not now' USING ERRCODE = '` + code + `';`
	}
	if _,
		err := w.pool.Exec(
		w.t.Context(), `CREATE OR REPLACE FUNCTION refuses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+raise+
			` RETURN NULL; END $$`); err != nil {
		w.t.Fatal(err)
	}
}

// TestPassingRefusals: PostgreSQL refuses every change for a moment, with an error of each group that passes, while
// answers of the carrier, receipts and a STOP come. Customers get "try again" at every door. Then all is accepted,
// every message is sent once, also after a restart, and each STOP is obeyed.
func TestPassingRefusals(t *testing.T) {
	t.Parallel()
	smppAddress, kannel := rig.FreeAddress(), rig.FreeAddress()
	w := play(
		t,
		scene{
			carriers: []carrier{{sim: carriersim.Options{NoFates: true, RespDelay: 300 * time.Millisecond,
				RedeliverDelay: 200 * time.Millisecond}}},
			config: tree{"smpp_server": tree{"listen": smppAddress}, "kannel": tree{"listen": kannel}}})
	shop := w.company("Isoko", 10_000)
	program := shop.binds(1, smppAddress)
	w.refuses("")
	for _, table := range hot {
		if _, err := w.pool.Exec(t.Context(), `CREATE TRIGGER refuses BEFORE INSERT OR UPDATE OR DELETE ON `+table+
			` FOR EACH STATEMENT EXECUTE FUNCTION refuses()`); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = w.pool.Exec(t.Context(), `DROP FUNCTION refuses CASCADE`) })

	var ids []string
	codes := passing
	if !testenv.Thorough() {
		codes = []string{"25006", "54000", "57P01", "XX000"}
	}
	for n, code := range codes {
		submits := w.lumitel.Stats().Submits
		w.lumitel.Faults(func(f *carriersim.Faults) { f.HoldReceipts = true })
		for range 3 {
			ids = append(ids, shop.sends(w.number(), "Hello "+word()).ID)
		}
		w.eventually(onTheWayWithin, "their receipts wait", func() bool {
			return scalar[bool](w, `SELECT (SELECT count(*) FROM segments) = (SELECT count(*) FROM messages)`)
		})
		ids = append(ids, shop.sends(w.number(), "Hello "+word()).ID)
		w.eventually(onTheWayWithin, "the carrier answers another one soon",
			func() bool { return w.lumitel.Stats().Submits == submits+4 })

		w.refuses(code)
		stops := w.number()
		if err := w.lumitel.SendMO(carriersim.MO{From: strings.TrimPrefix(stops, "+"), To: shop.sender,
			Text: "STOP"}); err != nil {
			t.Fatal(err)
		}
		w.lumitel.Faults(func(f *carriersim.Faults) { f.HoldReceipts = false })
		for what, a := range map[string]answer{
			"a send":             shop.tries(w.number(), "Hello "+word()),
			"a send with a key":  shop.tries(w.number(), "Hello "+word(), "Idempotency-Key", word()),
			"a verification":     shop.asks("/v1/verifications", tree{"phone_number": w.number(), "sender": shop.sender}),
			"a Kannel's sendsms": shop.kannels(kannel, w.number()),
		} {
			if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
				t.Errorf("%s: %s was answered %d %s, %v", code, what, a.status, a.body, a.err)
			}
		}
		if status := program.submits(w.number()); status != smpp.StatusMsgQueueFull {
			t.Errorf("%s: a submit_sm was answered %v", code, status)
		}
		w.eventually(onTheWayWithin, code+": receipts and the STOP are refused",
			func() bool { return w.lumitel.Stats().Redelivered >= uint64(4*n+1) })

		w.refuses("")
		well := time.Now()
		var a answer
		w.eventually(onTheWayWithin, code+": sends are accepted again", func() bool {
			a = shop.tries(w.number(), "Hello "+word())
			return a.status == http.StatusOK
		})
		ids = append(ids, a.ID)
		w.eventually(onTheWayWithin, code+": the STOP is obeyed", func() bool {
			return scalar[int](w, `SELECT count(*) FROM opt_outs WHERE phone_number = $1`, stops) == 1
		})
		for _, id := range ids[len(ids)-5:] {
			w.becomes(id, "sent")
		}
		t.Logf("%s: all is well %v later", code, time.Since(well))
	}
	w.gateway.terminate()
	w.gateway.start()
	for _, id := range ids {
		w.becomes(id, "sent")
	}
	w.drains()
	st := w.lumitel.Stats()
	if n := scalar[int](w, `SELECT count(*) FROM messages`); st.Duplicates != 0 || int(st.Accepted) != n || n != len(ids) {
		t.Errorf("the carrier has %d and %d twice, of %d messages; %d were accepted", st.Accepted, st.Duplicates, n, len(ids))
	}
}

// asks posts a body; the answer has any status.
func (c *company) asks(path string, body tree) answer {
	text, err := json.Marshal(body)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return c.calls(c.w.gateway, http.MethodPost, path, text)
}

// kannels sends a message in Kannel's form.
func (c *company) kannels(address, to string) (a answer) {
	query := url.Values{"username": {strconv.FormatInt(c.tokenID, 10)}, "password": {c.token}, "from": {c.sender},
		"to": {to}, "text": {"Hello " + word()}}
	response, err := c.w.client.Get("http://" + address + "/cgi-bin/sendsms?" + query.Encode())
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	a.status, a.header = response.StatusCode, response.Header
	a.body, a.err = io.ReadAll(response.Body)
	return a
}

// submits returns the status of the answer to a submit_sm.
func (p *program) submits(to string) (status smpp.Status) {
	w := p.from.w
	w.t.Helper()
	m := smpp.Submit{Source: p.from.sender, SourceTON: 5, Dest: strings.TrimPrefix(to, "+"), DestTON: 1, DestNPI: 1,
		ShortMessage: []byte("Hello " + word())}
	done := make(chan smpp.Result, 1)
	w.eventually(onTheWayWithin, "the program is bound",
		func() bool { return p.binds[0].Submit(w.t.Context(), &m, func(r smpp.Result) { done <- r }) == nil })
	return (<-done).Status
}
