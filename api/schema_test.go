package api

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// document is the OpenAPI document, valid with its examples.
var document = sync.OnceValue(func() *openapi3.T {
	// RFC 3339, 5.6: T and Z may be lower case
	openapi3.DefineStringFormatValidator("date-time",
		openapi3.NewRegexpFormatValidator(`(?i)`+openapi3.FormatOfStringDateTime))
	doc, err := openapi3.NewLoader().LoadFromData(describe(openAPIText))
	if err == nil {
		err = doc.Validate(context.Background())
	}
	if err != nil {
		panic(err)
	}
	return doc
})

// checkAgainstDocument checks a response against the document: status, body, headers, and that its text is an example.
func checkAgainstDocument(t testing.TB, req *http.Request, resp *http.Response, body []byte) {
	t.Helper()
	checkNamed(t, req, resp)
	path, ok := strings.CutPrefix(req.URL.Path, "/v1")
	if !ok || path == "/openapi.json" {
		return
	}
	operation := operationOf(req.Method, path)
	if operation == nil {
		if resp.StatusCode != 404 && resp.StatusCode != 405 {
			t.Errorf("%s %s answers %d and is not in the document", req.Method, path, resp.StatusCode)
		}
		visit(t, document().Components.Schemas["Message"].Value, body)
		provoke(body)
		return
	}
	documented := operation.Responses.Value(strconv.Itoa(resp.StatusCode))
	if documented == nil {
		t.Errorf("%s answers %d, which is not in the document: %s", operation.OperationID, resp.StatusCode, body)
		return
	}
	media := documented.Value.Content.Get("application/json")
	visit(t, media.Schema.Value, body)
	checkHeaders(t, operation.OperationID, documented.Value.Headers, resp)
	for name, h := range documented.Value.Headers {
		if text := resp.Header.Values(name); len(text) == 1 {
			visit(t, h.Value.Schema.Value, []byte(jsonOf(text[0])))
		}
	}
	if resp.StatusCode >= 400 {
		isCode(t, operation.OperationID, resp)
		isExample(t, operation.OperationID, media, body)
	} else if operation.RequestBody != nil {
		sent, err := req.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.NewDecoder(sent).Decode(&v); err != nil {
			t.Fatal(err)
		}
		if err := operation.RequestBody.Value.Content.Get("application/json").Schema.Value.VisitJSON(
			v, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s takes what the document forbids: %v", operation.OperationID, err)
		}
	}
}

// checkNamed checks that a response has a request id, and an error a code.
func checkNamed(t testing.TB, req *http.Request, resp *http.Response) {
	t.Helper()
	if id := resp.Header[requestHeader]; len(id) != 1 || !isRequestID(id[0]) {
		t.Errorf("%s %s: X-Request-Id is %q", req.Method, req.URL.Path, id)
	}
	code := resp.Header.Values("X-Error-Code")
	if resp.StatusCode < 400 && len(code) == 0 {
		return
	}
	if resp.StatusCode < 400 || len(code) != 1 || !slices.Contains(errorCodes(), code[0]) {
		t.Errorf("%s %s answers %d with the code %q", req.Method, req.URL.Path, resp.StatusCode, code)
	}
}

// checkHeaders checks that the promised headers are there, and no rate headers besides.
func checkHeaders(t testing.TB, operation string, promised openapi3.Headers, resp *http.Response) {
	t.Helper()
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After",
		"Idempotent-Replayed", "Preference-Applied"} {
		h, given := promised[name], resp.Header.Values(name)
		switch {
		case h == nil && len(given) > 0:
			t.Errorf("%s: %d has %s, which is not in the document", operation, resp.StatusCode, name)
		case h != nil && h.Value.Required && len(given) != 1:
			t.Errorf("%s: %d has %s %q", operation, resp.StatusCode, name, given)
		}
	}
}

// isCode reports whether the refusal's code has an example.
func isCode(t testing.TB, operation string, resp *http.Response) {
	t.Helper()
	code := resp.Header.Get("X-Error-Code")
	for _, r := range refusals {
		if r.code == code && r.status == resp.StatusCode && r.isOf(operation) {
			return
		}
	}
	t.Errorf("%s answers %d with the code %q, which the document does not have there", operation, resp.StatusCode, code)
}

// jsonOf returns a header's text as JSON: a number or a string.
func jsonOf(text string) string {
	if _, err := strconv.Atoi(text); err == nil {
		return text
	}
	return strconv.Quote(text)
}

func visit(t testing.TB, schema *openapi3.Schema, body []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Errorf("the answer is no JSON: %v: %s", err, body)
		return
	}
	if err := schema.VisitJSON(v, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("the answer is not as in the document: %v", err)
	}
}

// operationOf finds the operation of a path below /v1; nil when there is none.
func operationOf(method, path string) *openapi3.Operation {
	paths := document().Paths
	item := paths.Value(path)
	if item == nil {
		cut := strings.LastIndexByte(path, '/')
		for _, name := range []string{"{id}", "{batch_id}"} {
			if item = paths.Value(path[:cut+1] + name); item != nil {
				break
			}
		}
	}
	if item == nil { // an action: /things/{id}/act
		if parts := strings.Split(path, "/"); len(parts) == 4 {
			item = paths.Value("/" + parts[1] + "/{id}/" + parts[3])
		}
	}
	if item == nil {
		return nil
	}
	return item.GetOperation(method)
}

var (
	digits = regexp.MustCompile(`\d+`)
	names  = regexp.MustCompile(`variables: .*`)
)

// shape returns a text without its variable parts.
func shape(text string) string {
	text = digits.ReplaceAllString(names.ReplaceAllString(text, "variables: …"), "0")
	return severalNamed.ReplaceAllString(text, "Recipients #0 and #0")
}

// severalNamed matches a list of recipients.
var severalNamed = regexp.MustCompile(`Recipients #0(?:, #0)* and (?:#0|0 more)`)

// shapeOfField returns the shape of a text that begins with a field's name.
func shapeOfField(text string) string {
	text = parameterNames.ReplaceAllString(text, "The colour parameter")
	text = misplacedNames.ReplaceAllString(text, ".send_at$1")
	return shape(variableNames.ReplaceAllString(text, "$1.code "))
}

var parameterNames = regexp.MustCompile(`^The \S+ parameter`)

var misplacedNames = regexp.MustCompile(`\.(?:expire_at|cost_center)( field must be given for the whole request\.)`)

var variableNames = regexp.MustCompile(`(variables|fields)\.\w+ `)

// exampleTexts caches the shapes of a media type's examples, by its pointer.
var exampleTexts sync.Map

// shapes returns the shapes of the texts in a refusal's body.
func shapes(body any) (out []string) {
	raw, _ := json.Marshal(body)
	var refusal struct {
		Message string
		Errors  map[string][]string
	}
	_ = json.Unmarshal(raw, &refusal)
	out = append(out, shapeOfField(refusal.Message))
	for _, each := range refusal.Errors {
		for _, text := range each {
			out = append(out, shapeOfField(text))
		}
	}
	return out
}

// isExample reports whether each text of a refusal has an example.
func isExample(t testing.TB, operation string, media *openapi3.MediaType, body []byte) {
	t.Helper()
	known := map[string]bool{}
	if cached, ok := exampleTexts.Load(media); ok {
		known = cached.(map[string]bool)
	} else {
		for _, example := range media.Examples {
			for _, text := range shapes(example.Value.Value) {
				known[text] = true
			}
		}
		exampleTexts.Store(media, known)
	}
	provoke(body)
	var got any
	_ = json.Unmarshal(body, &got)
	for _, text := range shapes(got) {
		if !known[text] {
			t.Errorf("%s: the document has no example of %q", operation, text)
		}
	}
}
