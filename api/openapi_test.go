package api

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"intumwa/internal/throttle"
)

// contractTexts are all the texts of rule api 7; rule choices 1.4, 1.7, 1.10, 2.3, 6.2.
var contractTexts = []string{
	"The phone number is required.",
	"The phone number must be a valid Burundi (+257) number.",
	"The sender is required.",
	"The sender must be 1-11 alphanumeric characters.",
	"The message content is required.",
	"The message must not exceed 600 characters.",
	"The messages field must contain at least one item.",
	"The messages field must not contain more than 500 items.",
	"The messages.N.phone_number field is required.",
	"The messages.N.phone_number field must be a valid Burundi (+257) number.",
	"The messages.N.message field must not exceed 600 characters.",
	"The template field is required.",
	"The template field must not exceed 600 characters.",
	"The recipients field must contain at least one item.",
	"The recipients field must not contain more than 500 items.",
	"The recipients.N.phone_number field is required.",
	"The recipients.N.phone_number field must be a valid Burundi (+257) number.",
	"The recipients.N.variables field is required.",
	"The recipients.N.variables.code field must not exceed 255 characters.",
	"You must create a company before sending messages.",
	"Bulk send does not support the test sender (INTUMWATEST); use the single-message endpoint for test traffic.",
	"Your company must be approved before sending messages.",
	"Your company must be verified before sending messages.",
	"Sender not found.",
	"The sender must be approved before sending messages.",
	"The phone number country (BI) does not match the sender ID's telco country (RW).",
	"Insufficient SMS credits. This batch requires N credits.",
	"Insufficient SMS credits. This batch requires N credit.",
	"Insufficient SMS credits. This message requires N credits.",
	"Recipient #N is missing required template variables: code.",
	"Unauthenticated.",
	"Too Many Attempts.",
	"Verify a test number before sending test messages.",
	"Test messages can only be sent to your verified test number.",
	"Test quota exceeded.",
	"No carrier serves this phone number.",
	"Recipient #N: no carrier serves this phone number.",
	"Recipient #N's message is empty.",
	"Recipient #N's message is too long.",
	"The request body is not valid JSON.",
	"The request body is too large.",
	"The Content-Type must be application/json.",
	"A request with this idempotency key is still being processed.",
	"The idempotency key was already used with a different request.",
	"The Idempotency-Key header is not valid.",
}

func TestEveryTextHasAnExample(t *testing.T) {
	var doc any
	if err := json.Unmarshal(describe(openAPIText), &doc); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			known[shape(v)] = true
		case []any:
			for _, each := range v {
				walk(each)
			}
		case map[string]any:
			for _, each := range v {
				walk(each)
			}
		}
	}
	walk(doc)
	index := regexp.MustCompile(`\bN\b`)
	for _, text := range contractTexts {
		if !known[shape(index.ReplaceAllString(text, "0"))] {
			t.Errorf("no example of %q", text)
		}
	}
}

// What the document says and what is served are the same endpoints.
func TestDocumentListsTheRoutes(t *testing.T) {
	a := &API{Rooms: Rooms{Throttle: throttle.New(nil, throttle.Options{})}}
	table, err := a.table()
	if err != nil {
		t.Fatal(err)
	}
	var served, described []string
	for _, e := range table {
		if path, ok := strings.CutPrefix(e.path, "/v1"); ok && path != "/openapi.json" {
			path = strings.Replace(path, "/sms/batches/:id", "/sms/batches/{batch_id}", 1)
			served = append(served, e.method+" "+strings.Replace(path, ":id", "{id}", 1))
		}
	}
	for path, item := range document().Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(described)
	if !slices.Equal(served, described) {
		t.Errorf("served\n%v\ndescribed\n%v", served, described)
	}
	if got := len(document().Webhooks); got != 4 {
		t.Errorf("the document has %d webhooks", got)
	}
}

// The check itself must be able to fail.
func TestDocumentForbids(t *testing.T) {
	schema := document().Components.Schemas["SingleResult"].Value
	good := vars{"id": "01JNA2K3M4N5P6Q7R8S9T0V1W2", "item_count": 1.0, "remaining_items": 9.0, "status": "queued",
		"to": "+25779123456", "sender": "ACME", "message": "x"}
	if err := schema.VisitJSON(good, openapi3.EnableJSONSchema2020()); err != nil {
		t.Fatal(err)
	}
	for field, bad := range (vars{"id": "01jna2k3m4n5p6q7r8s9t0v1w2", "item_count": 0.0, "status": "sent", "to": "79123456", "more": true}) {
		wrong := vars{}
		for name, v := range good {
			wrong[name] = v
		}
		wrong[field] = bad
		if schema.VisitJSON(wrong, openapi3.EnableJSONSchema2020()) == nil {
			t.Errorf("%s may be %v", field, bad)
		}
	}
}

func TestServedDocument(t *testing.T) {
	w := newWorld(t, worldOptions{})
	got := w.do("", "GET", "/v1/openapi.json", "")
	if got.status != http.StatusOK || !json.Valid([]byte(got.body)) {
		t.Errorf("status %d", got.status)
	}
}
