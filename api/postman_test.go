package api

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

// The collection has a request for each operation of the document, and no other, with
// a body where the document has one.
func TestPostmanCollection(t *testing.T) {
	w := newWorld(t, worldOptions{})
	got := w.do("", "GET", "/docs/"+collectionName, "")
	var collection struct {
		Item []struct {
			Name string
			Item []struct {
				Name     string
				Request  postmanRequest
				Response []struct{ Name string }
			}
		}
		Variable []postmanField
	}
	if err := json.Unmarshal([]byte(got.body), &collection); err != nil || got.status != 200 {
		t.Fatalf("%d %v", got.status, err)
	}
	if base := collection.Variable[0]; base.Key != "base_url" || base.Value != w.server.URL+"/v1" {
		t.Errorf("its address is %+v", base)
	}
	var requests, operations []string
	if collection.Item[0].Name != "First SMS" {
		t.Errorf("it begins with %s", collection.Item[0].Name)
	}
	for _, folder := range collection.Item[1:] {
		for _, item := range folder.Item {
			path := strings.TrimPrefix(item.Request.URL.Raw, "{{base_url}}")
			for _, v := range item.Request.URL.Variable {
				if name := strings.Trim(v.Value, "{}"); !strings.HasPrefix(v.Value, "{{") || !slices.ContainsFunc(collection.Variable, func(f postmanField) bool { return f.Key == name }) {
					t.Errorf("%s: %s is %q, which is no variable of the collection", item.Name, v.Key, v.Value)
				}
				path = strings.Replace(path, ":"+v.Key, "{"+v.Key+"}", 1)
			}
			requests = append(requests, item.Request.Method+" "+path)
			if item.Request.Body != nil && !json.Valid([]byte(item.Request.Body.Raw)) || item.Request.Body == nil && item.Request.Method == "PUT" {
				t.Errorf("%s: its body is %+v", item.Name, item.Request.Body)
			}
			if len(item.Response) < 5 {
				t.Errorf("%s has %d examples", item.Name, len(item.Response))
			}
		}
	}
	for path, item := range document().Paths.Map() {
		for method := range item.Operations() {
			operations = append(operations, method+" "+path)
		}
	}
	slices.Sort(requests)
	slices.Sort(operations)
	if !slices.Equal(requests, operations) {
		t.Errorf("requests\n%v\noperations\n%v", requests, operations)
	}
}

// Newman, which is Postman without its window, runs the collection as it was fetched: every request is one that the gateway
// understands, and none of them touches what was there before. As it is it sends to the sandbox only; with the customer's own
// sender and number it sends to that number, and cancels and re-sends what it has sent itself.
func TestNewmanRunsTheCollection(t *testing.T) {
	npm, node := testenv.Tool(t, "npm"), testenv.Tool(t, "node")
	s, w := newWorkshop(t)
	w.exec(`ALTER SEQUENCE messages_id_seq RESTART WITH 1024`) // an id that the examples have
	w.told("live", 1)                                          // as is the delivery evt_8
	if got := w.do("live", "POST", "/v1/sms", single("+25779123400", "ACME", "Earlier")); got.status != 200 {
		t.Fatal(got)
	}
	untouched := func() string {
		return fmt.Sprint(w.do("live", "GET", "/v1/sms/1024", "").body, w.do("live", "GET", "/v1/test-number", "").body,
			w.do("live", "GET", "/v1/webhook-deliveries/evt_8", "").body, w.do("live", "GET", "/v1/opt-outs", "").body)
	}
	before, credits := untouched(), w.do("live", "GET", "/v1/balance", "").body
	if !strings.Contains(before, `"status":"pending"`) {
		t.Fatalf("nothing waits that could be cancelled: %s", before)
	}
	w.hooked("live")
	s.copy("newman/package.json", "package.json")
	s.write("collection.json", w.do("", "GET", "/docs/"+collectionName, "").body)
	s.fetch(npm, "install", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--prefer-offline")
	newman := func(args ...string) (ran map[string]int, assertions int, err error) {
		t.Helper()
		said, err := s.try(node, append([]string{"node_modules/newman/bin/newman.js", "run", "collection.json",
			"--reporters", "json,cli", "--reporter-json-export", "report.json"}, args...)...)
		text, readErr := os.ReadFile(filepath.Join(s.dir, "report.json"))
		if readErr != nil {
			t.Fatalf("%v: %v\n%s", args, err, said)
		}
		var report struct {
			Run struct {
				Stats      struct{ Assertions struct{ Total int } }
				Executions []struct {
					Item     struct{ Name string }
					Response struct{ Code int }
				}
			}
		}
		if err := json.Unmarshal(text, &report); err != nil {
			t.Fatal(err)
		}
		ran = map[string]int{}
		for _, e := range report.Run.Executions {
			ran[e.Item.Name] = e.Response.Code
		}
		return ran, report.Run.Stats.Assertions.Total, err
	}
	token := "token=" + w.tokens["live"]
	expect := func(ran map[string]int, others map[string]int) {
		t.Helper()
		for name, code := range ran {
			want := others[name]
			if want == 0 {
				want = 200
			}
			if code != want {
				t.Errorf("%s: %d, not %d", name, code, want)
			}
		}
	}

	ran, assertions, err := newman("--folder", "First SMS", "--env-var", token)
	if err != nil || assertions != 3 || len(ran) != 3 {
		t.Errorf("the first SMS: %v, %d assertions, %v", ran, assertions, err)
	}
	if _, _, err := newman("--folder", "First SMS", "--env-var", "token=1|wrong"); err == nil {
		t.Error("the first SMS is green with a wrong token")
	}
	none := map[string]int{"Send many messages": 422, "Send a template": 422, "Cancel a batch": 404, "Cancel a batch, by its short path": 404,
		"Look up a batch": 404, "List a batch's messages": 404, "One message from a handset": 404, "Name the test number": 422,
		"Confirm the test number": 422, "Add opt-outs": 422, "Remove an opt-out": 422}
	ran, _, err = newman("--env-var", token)
	if err != nil {
		t.Error(err)
	}
	expect(ran, none)
	if operations := strings.Count(openAPIText, `"x-refusals"`); len(ran) != operations+3 {
		t.Errorf("%d of %d requests ran", len(ran), operations)
	}
	if got := untouched(); got != before {
		t.Errorf("what was there before is\n%s\nand was\n%s", got, before)
	}
	if got := w.do("live", "GET", "/v1/balance", "").body; got != credits {
		t.Errorf("the balance is %s, and was %s", got, credits)
	}
	ran, _, err = newman("--folder", "Sending", "--folder", "Looking up", "--env-var", token, "--env-var", "sender=ACME", "--env-var", "phone_number=+25761234500")
	if err != nil {
		t.Error(err)
	}
	expect(ran, nil)
	if got := untouched(); got != before {
		t.Errorf("what was there before is\n%s\nand was\n%s", got, before)
	}
	if n := w.count(`SELECT count(*) FROM messages WHERE phone_number NOT IN ('+25761234500', '+25701000001') AND id <> 1024`); n != 0 {
		t.Errorf("%d messages to other numbers", n)
	}
}
