package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"intumwa/sms"
)

// postmanBase is the placeholder in the collection for the address that the client
// used.
const postmanBase = "{base}"

// postmanUnknown is the value of an id that no request has set yet: nothing has it.
const postmanUnknown = "none"

// postmanVariables are the collection's variables beside base_url and token. As they are,
// every send goes to the sandbox or is refused: a run costs nothing and reaches nobody.
func postmanVariables(testSender string) []postmanField {
	return []postmanField{
		{Key: "sender", Value: testSender, Description: "The test sender. For real messages: an approved sender of yours."},
		{Key: "phone_number", Value: string(sms.SandboxFates()[0].Number), Description: "A number of the sandbox. For real messages: a number of your own."},
		{Key: "test_number", Value: string(sms.SandboxFates()[0].Number), Description: "No number that can be named: to name your test number, put it here."},
		{Key: "otp", Value: "", Description: "The six digits that your test number received."},
		{Key: "id", Value: postmanUnknown, Description: "The message that was sent last; a send sets it."},
		{Key: "first_id", Value: postmanUnknown, Description: "The message of the folder First SMS, which sets it."},
		{Key: "batch_id", Value: postmanUnknown, Description: "The batch that was sent last; a send sets it."},
		{Key: "delivery_id", Value: postmanUnknown, Description: "The webhook delivery of the first message; their list sets it."},
		{Key: "inbound_id", Value: postmanUnknown, Description: "The latest message from a handset; their list sets it."},
	}
}

// postmanExamples replaces the numbers, names and codes in the document's examples by variables.
var postmanExamples = strings.NewReplacer(`"+25779123400"`, `"{{phone_number}}"`, `"61 23 45 00"`, `"{{phone_number}}"`,
	`"ACME"`, `"{{sender}}"`, `"012345"`, `"{{otp}}"`)

// postmanPaths are the variables of path parameters by the path before them.
var postmanPaths = map[string]string{"sms": "id", "sms/batches": "batch_id", "batches": "batch_id",
	"webhook-deliveries": "delivery_id", "inbound": "inbound_id", "opt-outs": "phone_number"}

// postmanSaves are what requests keep of their responses, by operation: variable and expression.
var postmanSaves = map[string][2]string{
	"sendSms":               {"id", "id"},
	"sendBulk":              {"batch_id", "batch_id"},
	"sendTemplate":          {"batch_id", "batch_id"},
	"listWebhookDeliveries": {"delivery_id", "data[0]?.webhook_id"},
	"listInbound":           {"inbound_id", "data[0]?.inbound_id"},
}

// postmanFirst is the folder that is tried first: operations, what they are called in it, and what is expected of them.
var postmanFirst = []struct{ operation, name, script string }{
	{"getBalance", "Is the token valid?", `
pm.test('the token is valid, and its user has a company', () => pm.response.to.have.status(200));`},
	{"sendSms", "Send it", `
pm.collectionVariables.set('looks', 0);
pm.collectionVariables.set('first_id', pm.collectionVariables.get('id'));
pm.test('the message is accepted', () => {
  pm.response.to.have.status(200);
  pm.expect(pm.response.json().status).to.eql('queued');
});`},
	{"getSms", "See what became of it", `
// In a run it looks again after a second; sent by hand, send it again.
const looks = 1 + Number(pm.collectionVariables.get('looks'));
pm.collectionVariables.set('looks', looks);
if (pm.response.json().status === 'pending' && looks < 30) {
  pm.execution.setNextRequest(pm.info.requestName);
  setTimeout(() => {}, 1000);
} else {
  pm.test('the message is sent', () => pm.expect(pm.response.json().status).to.eql('sent'));
}`},
}

// postman makes a Postman collection (v2.1) of the OpenAPI document: the folder First SMS,
// then a folder for each tag, a request for each operation, its responses as examples.
// Requests about a message, batch or delivery are about one that the collection has sent.
func postman(document []byte, testSender string) ([]byte, error) {
	var doc openAPIDocument
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("reading the document: %w", err)
	}
	folders := map[string]*postmanItem{}
	operations := map[string]*postmanItem{}
	collection := map[string]any{
		"info": map[string]any{"name": doc.Info.Title, "description": doc.Info.Description,
			"schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
		"auth":     map[string]any{"type": "bearer", "bearer": []any{map[string]any{"key": "token", "value": "{{token}}", "type": "string"}}},
		"variable": append([]postmanField{{Key: "base_url", Value: postmanBase}, {Key: "token", Value: tokenExample}}, postmanVariables(testSender)...),
	}
	first := &postmanItem{Name: "First SMS"}
	items := []*postmanItem{first}
	for _, tag := range doc.Tags {
		folders[tag.Name] = &postmanItem{Name: tag.Name}
		items = append(items, folders[tag.Name])
	}
	for _, path := range doc.Paths {
		for _, operation := range path.value {
			o := operation.value
			if len(o.Tags) != 1 || folders[o.Tags[0]] == nil {
				return nil, fmt.Errorf("%s is in no folder", o.ID)
			}
			folder := folders[o.Tags[0]]
			operations[o.ID] = doc.item(path.name, strings.ToUpper(operation.name), &o)
			folder.Items = append(folder.Items, operations[o.ID])
		}
	}
	for _, step := range postmanFirst {
		of := operations[step.operation]
		if of == nil {
			return nil, fmt.Errorf("%s is not in the document", step.operation)
		}
		first.Items = append(first.Items, &postmanItem{Name: step.name, Request: of.Request, Events: append(slices.Clone(of.Events), postmanTest(step.script))})
	}
	collection["item"] = items
	return encodeJSON(collection), nil
}

// openAPIDocument is what the collection needs of the document.
type openAPIDocument struct {
	Info       struct{ Title, Description string }
	Tags       []struct{ Name string }
	Paths      ordered[ordered[operation]]
	Components struct {
		Parameters map[string]parameter
		Responses  map[string]answer
	}
}

type operation struct {
	ID                   string `json:"operationId"`
	Summary, Description string
	Tags                 []string
	Parameters           []parameter
	RequestBody          struct{ Content map[string]examples }
	Responses            map[string]answer
}

type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Example               string
}

type answer struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]examples
}

type examples struct {
	Examples ordered[struct {
		Summary string
		Value   json.RawMessage
	}]
}

// ordered is a JSON object whose members keep their order.
type ordered[V any] []named[V]

type named[V any] struct {
	name  string
	value V
}

// UnmarshalJSON reads an object.
func (o *ordered[V]) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil { // the opening brace
		return err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		var value V
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		*o = append(*o, named[V]{fmt.Sprint(key), value})
	}
	return nil
}

// postmanItem is a folder or a request.
type postmanItem struct {
	Name      string           `json:"name"`
	Items     []*postmanItem   `json:"item,omitempty"`
	Request   *postmanRequest  `json:"request,omitempty"`
	Responses []postmanExample `json:"response,omitempty"`
	Events    []postmanEvent   `json:"event,omitempty"`
}

// postmanEvent is a script that runs after a response.
type postmanEvent struct {
	Listen string `json:"listen"`
	Script struct {
		Type string   `json:"type"`
		Exec []string `json:"exec"`
	} `json:"script"`
}

func postmanTest(script string) (event postmanEvent) {
	event.Listen, event.Script.Type = "test", "text/javascript"
	event.Script.Exec = strings.Split(strings.TrimSpace(script), "\n")
	return event
}

type postmanRequest struct {
	Method      string         `json:"method"`
	Description string         `json:"description"`
	Header      []postmanField `json:"header"`
	URL         postmanURL     `json:"url"`
	Body        *postmanBody   `json:"body,omitempty"`
}

type postmanURL struct {
	Raw      string         `json:"raw"`
	Host     []string       `json:"host"`
	Path     []string       `json:"path"`
	Query    []postmanField `json:"query,omitempty"`
	Variable []postmanField `json:"variable,omitempty"`
}

type postmanField struct {
	Key         string `json:"key"`
	Value       string `json:"value"`
	Description string `json:"description,omitempty"`
	Disabled    bool   `json:"disabled,omitempty"`
}

type postmanBody struct {
	Mode    string         `json:"mode"`
	Raw     string         `json:"raw"`
	Options map[string]any `json:"options"`
}

type postmanExample struct {
	Name     string          `json:"name"`
	Original *postmanRequest `json:"originalRequest"`
	Code     int             `json:"code"`
	Header   []postmanField  `json:"header"`
	Body     string          `json:"body"`
}

// item makes the request of an operation.
func (d *openAPIDocument) item(path, method string, o *operation) *postmanItem {
	request := &postmanRequest{Method: method, Description: o.Description,
		Header: []postmanField{{Key: "Accept", Value: "application/json"}}, URL: postmanURL{Host: []string{"{{base_url}}"}}}
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			part = ":" + strings.TrimSuffix(name, "}")
		}
		request.URL.Path = append(request.URL.Path, part)
	}
	request.URL.Raw = "{{base_url}}/" + strings.Join(request.URL.Path, "/")
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters[nameIn(p.Ref)]
		}
		field := postmanField{Key: p.Name, Value: p.Example, Description: p.Description}
		switch p.In {
		case "path":
			before, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/{")
			field.Value = "{{" + postmanPaths[before] + "}}"
			request.URL.Variable = append(request.URL.Variable, field)
		case "query":
			if field.Disabled = o.ID != "listWebhookDeliveries" || p.Name != "message_id"; !field.Disabled {
				field.Value = "{{first_id}}"
			}
			request.URL.Query = append(request.URL.Query, field)
		case "header":
			if field.Disabled = p.Name != "Idempotency-Key"; !field.Disabled {
				field.Value = "{{$guid}}"
			}
			request.Header = append(request.Header, field)
		}
	}
	if body := o.RequestBody.Content["application/json"].Examples; len(body) > 0 {
		request.Header = append(request.Header, postmanField{Key: "Content-Type", Value: "application/json"})
		text := postmanExamples.Replace(indented(body[0].value.Value))
		if o.ID == "putTestNumber" {
			text = strings.ReplaceAll(text, "{{phone_number}}", "{{test_number}}")
		}
		request.Body = &postmanBody{Mode: "raw", Raw: text,
			Options: map[string]any{"raw": map[string]any{"language": "json"}}}
	}
	item := &postmanItem{Name: o.Summary, Request: request}
	if saved, ok := postmanSaves[o.ID]; ok {
		item.Events = append(item.Events, postmanTest(fmt.Sprintf(`
const value = pm.response.code === 200 && pm.response.json().%s;
if (value) pm.collectionVariables.set('%s', value);`, saved[1], saved[0])))
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		response := o.Responses[status]
		if response.Ref != "" {
			response = d.Components.Responses[nameIn(response.Ref)]
		}
		code, _ := strconv.Atoi(status)
		for _, each := range response.Content["application/json"].Examples {
			item.Responses = append(item.Responses, postmanExample{Name: status + " " + each.value.Summary, Original: request, Code: code,
				Header: []postmanField{{Key: "Content-Type", Value: "application/json"}}, Body: indented(each.value.Value)})
		}
	}
	return item
}

// nameIn returns the name at the end of a reference.
func nameIn(reference string) string { return reference[strings.LastIndexByte(reference, '/')+1:] }

func indented(text json.RawMessage) string {
	var out bytes.Buffer
	_ = json.Indent(&out, text, "", "  ") // it is valid: it was decoded before
	return out.String()
}
