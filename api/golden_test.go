package api

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// golden is one request and its exact response. In want, ULID matches any ULID and TIME any timestamp.
type golden struct {
	name    string
	as      string // customer; "" without a token
	credits int64  // the company's before the request, when not 0; -1: none
	body    string
	status  int
	want    string
	post    string // path, if not the table's
}

var (
	anyULID = regexp.MustCompile(`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?\+00:00`)
)

// runGolden sends each case's request and compares the whole response. A refused request must leave nothing.
func runGolden(t *testing.T, path string, cases []golden) {
	w := newWorld(t, worldOptions{}).settle()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			switch {
			case c.credits > 0:
				w.credits(c.as, c.credits)
			case c.credits < 0:
				w.credits(c.as, 0)
			}
			to := path
			if c.post != "" {
				to = c.post
			}
			before := w.recorded()
			got := w.do(c.as, "POST", to, c.body)
			if got.status != c.status {
				t.Errorf("status %d, not %d: %s", got.status, c.status, got.body)
			}
			sameJSON(t, got.body, c.want)
			if after := w.recorded(); c.status != 200 && after != before {
				t.Errorf("a refused request left something: %v, then %v (messages, batches, ledger, outbox)", before, after)
			}
			if kind := got.header.Get("Content-Type"); kind != "application/json" {
				t.Errorf("Content-Type is %q", kind)
			}
		})
	}
}

func sameJSON(t testing.TB, got, want string) {
	t.Helper()
	got = anyTime.ReplaceAllString(anyULID.ReplaceAllString(got, "ULID"), "TIME")
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Errorf("the answer is no JSON: %v: %s", err, got)
		return
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("the expectation is no JSON: %v: %s", err, want)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("answer\n%s\nnot\n%s", got, want)
	}
}

// messageJSON is the body of a refusal.
func messageJSON(text string) string { return encode(message{text}) }

// fails is the body of a 422: the message, then fields and texts in turn.
func fails(text string, fieldsAndTexts ...string) string {
	errors := map[string][]string{}
	for i := 0; i < len(fieldsAndTexts); i += 2 {
		errors[fieldsAndTexts[i]] = []string{fieldsAndTexts[i+1]}
	}
	return encode(map[string]any{"message": text, "errors": errors})
}

// failsFirst is the body of a single request's 422.
func failsFirst(fieldsAndTexts ...string) string { return fails(fieldsAndTexts[1], fieldsAndTexts...) }

// failsBatch is the body of a batch's 422.
func failsBatch(fieldsAndTexts ...string) string {
	return fails("The given data was invalid.", fieldsAndTexts...)
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func object(pairs ...any) string {
	fields := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		fields[pairs[i].(string)] = pairs[i+1]
	}
	return encode(fields)
}

func long(n int) string { return strings.Repeat("a", n) }
