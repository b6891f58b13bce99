package stories

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/tools/carriersim"
)

var tenDigits = regexp.MustCompile(`\b\d{10}\b`)

// codes returns the codes that a carrier got for a number, of ten digits: shorter ones may stand by chance in other
// numbers.
func (s *smsc) codes(number string) (codes []string) {
	for _, submit := range s.Submits() {
		if "+"+submit.Destination.Addr == number {
			codes = append(codes, tenDigits.FindAllString(submit.Text, -1)...)
		}
	}
	return codes
}

// ends returns the seconds of a relative validity_period.
func ends(t *testing.T, s carriersim.Submit) time.Duration {
	t.Helper()
	var minutes, seconds int
	if n, err := fmt.Sscanf(s.Validity, "00000000%02d%02d000R", &minutes, &seconds); n != 2 {
		t.Fatalf("validity_period is %q: %v", s.Validity, err)
	}
	return time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second
}

// TestCodesAreNowhere: verifications of every form go out, one again, one after a lost response, and one by a second
// carrier. Each carrier gets the code and the ttl as validity_period. Then the codes are in no column of the database,
// no key of Redis, no log, no webhook, no trace and no answer.
func TestCodesAreNowhere(t *testing.T) {
	t.Parallel()
	w := play(t, scene{
		carriers:       []carrier{{config: tree{"second_carrier": "leo"}}, {name: "leo"}},
		config:         tree{"log": tree{"level": "debug"}},
		gateways:       []tree{{}, {"log": tree{"format": "text"}}},
		brokenProtocol: true, // a carrier drops its connections
	})
	shop := w.company("Isoko", 1000)
	var traces []func() []byte
	for _, g := range w.gateways {
		for _, c := range w.carriers {
			traces = append(traces, g.traces(c.Name()+"-1"))
		}
	}
	w.orders(&tree{}, "", "webhook", "set", "--company", shop.number(), "--events", "verification.finished")
	const ttl = 300
	type verification struct {
		number, id, sms, code string
	}
	verify := func(number string, more tree) verification {
		t.Helper()
		var v struct {
			ID      string `json:"id"`
			SMS     string `json:"sms_id"`
			Expires string `json:"expires_at"`
			Created string `json:"created_at"`
		}
		shop.requests(http.MethodPost, "/v1/verifications", tree{"phone_number": number, "sender": "Isoko", "code_length": 10,
			"ttl": ttl}.over(more), &v)
		created, _ := time.Parse(time.RFC3339, v.Created)
		if expires, err := time.Parse(time.RFC3339, v.Expires); err != nil || expires.Sub(created) != ttl*time.Second {
			t.Errorf("it ends at %s, %v", v.Expires, err)
		}
		return verification{number: number, id: v.ID, sms: v.SMS}
	}
	var all []verification
	for _, form := range []struct {
		number string
		more   tree
	}{
		{w.fated(1), nil},  // a second carrier takes it, within a minute, and reports the same
		{w.fated(26), nil}, // the same, and a handset forges a receipt
		{w.number(), nil},
		{w.number(), tree{"locale": "rn", "client_reference": "login 7", "end_user_id": "u-7"}},
		{w.number(), tree{"locale": "sw", "amount": "25 000 FBu", "payee": "Chez Aline"}},
		{w.number(), tree{"locale": "en", "app_hash": "FA+9qCX9VSu"}},
		{w.number(), tree{"web_domain": "boutique.example.bi"}},
		{w.fated(4), nil},  // refused once
		{w.fated(23), nil}, // the connection is closed, and the segment is sent again
		{w.fated(37), nil}, // the same, but the carrier has taken it
		{w.fated(63), nil}, // the handset answers
	} {
		all = append(all, verify(form.number, form.more))
	}
	time.Sleep(time.Second) // the same within a second is a double click, which sends nothing
	again := verify(all[2].number, nil)
	if again.id != all[2].id {
		t.Error("sent again, it is another verification")
	}
	leo := w.carriers[1]
	for i := range all {
		v := &all[i]
		w.becomes(v.sms, map[bool]string{true: "failed", false: "sent"}[i < 2])
		for _, c := range w.carriers {
			for _, code := range c.codes(v.number) {
				if v.code == "" {
					v.code = code
				}
				if code != v.code {
					t.Errorf("one verification has the codes %s and %s", v.code, code)
				}
			}
			for _, submit := range c.segmentsOf(v.number) {
				if left := ends(t, submit); left > ttl*time.Second || left < (ttl-60)*time.Second {
					t.Errorf("%s has it for %v, not %d s", c.Name(), left, ttl)
				}
			}
		}
		if v.code == "" {
			t.Fatalf("no carrier got a code: %v", v)
		}
	}
	if len(leo.codes(all[0].number)) == 0 || len(w.lumitel.codes(all[8].number)) < 2 {
		t.Error("no second carrier has it, or it was not sent again")
	}
	w.becomes(again.sms, "sent")

	check := func(v verification, code string, more tree) int {
		text, err := json.Marshal(tree{"code": code}.over(more))
		if err != nil {
			t.Fatal(err)
		}
		return shop.calls(w.gateways[1], http.MethodPost, "/v1/verifications/"+v.id+"/check", text).status
	}
	var answers bytes.Buffer
	for i, v := range all {
		if i == 3 { // five wrong codes, then the right one
			for range 5 {
				check(v, strings.Repeat("0", 10), nil)
			}
			if status := check(v, v.code, nil); status != http.StatusTooManyRequests {
				t.Errorf("the right code after five wrong ones: %d", status)
			}
		} else if status := check(v, v.code, tree{"amount": "25 000 FBu", "payee": "Chez Aline"}); i == 4 &&
			status != http.StatusOK || i != 4 && status != http.StatusBadRequest {
			t.Errorf("%d: a payment that it has, or has not: %d", i, status)
		}
		if status := check(v, v.code, nil); i != 4 && i != 3 && status != http.StatusOK {
			t.Errorf("%d: the right code: %d", i, status)
		}
		for _, path := range []string{"/v1/verifications/" + v.id, "/v1/sms/" + v.sms} {
			answers.Write(shop.calls(w.gateway, http.MethodGet, path, nil).body)
		}
	}
	for _, command := range [][]string{{"message", "show", "--id", all[2].sms}, {"log"},
		{"verification", "text", "list"}} {
		var shown any
		w.orders(&shown, "", command...)
		fmt.Fprint(&answers, shown)
	}
	answers.Write(shop.calls(w.gateway, http.MethodGet, "/v1/sms?limit=100", nil).body)
	finished := func() (n int) {
		for _, call := range shop.webhooks() {
			if call.Event == "verification.finished" {
				n++
			}
		}
		return n
	}
	w.eventually(finalWithin, "every end is told", func() bool { return finished() == len(all) })
	for _, call := range shop.webhooks() {
		answers.Write(call.body)
	}
	before := answers.Len()
	for _, trace := range traces {
		answers.Write(trace())
	}
	if !bytes.Contains(answers.Bytes()[before:], []byte("submit_sm")) {
		t.Error("the traces have no submit_sm")
	}
	for _, v := range all {
		w.secret(v.code) // the end of every world searches the logs
		if i := bytes.Index(answers.Bytes(), []byte(v.code)); i >= 0 {
			t.Errorf("an answer has a code: %s", excerpt(answers.Bytes(), i, len(v.code)))
		}
	}
	w.holdsNone(all[0].code, all[1].code, all[2].code, all[3].code, all[4].code, all[5].code, all[6].code, all[7].code,
		all[8].code, all[9].code, all[10].code)
	if n := scalar[int](w, `SELECT count(*) FROM messages WHERE secret IS NOT NULL`); n != 0 {
		t.Errorf("%d final messages have a secret", n)
	}
	if n := scalar[int](w, `SELECT count(*) FROM messages WHERE body LIKE '%**********%'`); n != len(all)+1 {
		t.Errorf("%d texts have a mask", n)
	}
}

// traces begins a trace of a link. The function ends it and returns what it had.
func (g *gateway) traces(link string) func() []byte {
	g.w.t.Helper()
	ctx, end := context.WithCancel(g.w.t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.ops+"/debug/links/"+link+
		"/trace?seconds=300", http.NoBody)
	if err != nil {
		g.w.t.Fatal(err)
	}
	read := make(chan []byte)
	go func() {
		var text []byte
		if response, err := http.DefaultClient.Do(request); err == nil {
			text, _ = io.ReadAll(response.Body) // until it is ended
			_ = response.Body.Close()
		}
		read <- text
	}()
	return func() []byte { end(); return <-read }
}

// holdsNone searches every row of the database, and every value in Redis, for texts, also in hexadecimal, as bytea has
// them.
func (w *world) holdsNone(texts ...string) {
	w.t.Helper()
	var patterns []string
	for _, text := range texts {
		patterns = append(patterns, "%"+text+"%", "%"+hex.EncodeToString([]byte(text))+"%")
	}
	rows, err := w.pool.Query(w.t.Context(), `SELECT quote_ident(table_schema) || '.' || quote_ident(table_name)
		FROM information_schema.tables
		WHERE table_type = 'BASE TABLE' AND table_schema = 'public'`)
	if err != nil {
		w.t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 30 {
		w.t.Fatalf("%d tables, %v", len(tables), err)
	}
	for _, table := range tables {
		for _, row := range scalar[[]string](w, `SELECT coalesce(array_agg(x::text), '{}') FROM `+table+
			` x WHERE x::text LIKE ANY($1)`, patterns) {
			w.t.Errorf("%s holds it: %s", table, row)
		}
	}
	client := w.redisClient()
	keys := client.Scan(w.t.Context(), 0, w.prefix+"*", 1000).Iterator()
	n := 0
	for ; keys.Next(w.t.Context()); n++ {
		value, err := client.Dump(w.t.Context(), keys.Val()).Result()
		for _, text := range texts {
			if err == nil && strings.Contains(keys.Val()+value, text) {
				w.t.Errorf("Redis has it in %s", keys.Val())
			}
		}
	}
	if err := keys.Err(); err != nil || n == 0 {
		w.t.Errorf("%d keys in Redis, %v", n, err)
	}
}
