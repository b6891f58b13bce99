package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// postmanBase is the placeholder in the collection for the address that the client
// used.
const postmanBase = "{base}"

// postman makes a Postman collection (v2.1) of the OpenAPI document: a folder for each
// tag, a request for each operation, its responses as examples. Token and address are
// variables.
func postman(document []byte) ([]byte, error) {
	var doc openAPIDocument
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("reading the document: %w", err)
	}
	folders := map[string]*postmanItem{}
	collection := map[string]any{
		"info": map[string]any{"name": doc.Info.Title, "description": doc.Info.Description,
			"schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
		"auth":     map[string]any{"type": "bearer", "bearer": []any{map[string]any{"key": "token", "value": "{{token}}", "type": "string"}}},
		"variable": []any{map[string]any{"key": "base_url", "value": postmanBase}, map[string]any{"key": "token", "value": tokenExample}},
	}
	var items []*postmanItem
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
			folder.Items = append(folder.Items, doc.item(path.name, strings.ToUpper(operation.name), &o))
		}
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
			request.URL.Variable = append(request.URL.Variable, field)
		case "query":
			field.Disabled = true
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
		request.Body = &postmanBody{Mode: "raw", Raw: indented(body[0].value.Value),
			Options: map[string]any{"raw": map[string]any{"language": "json"}}}
	}
	item := &postmanItem{Name: o.Summary, Request: request}
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
