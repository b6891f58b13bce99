package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// endpoint is one endpoint or webhook on the reference page. It comes from the OpenAPI document, whose keys x-fr-… have
// the French texts, and from the refusals.
type endpoint struct {
	ID, Method, Path, Title, Text string
	Parameters, Body, Response    []field
	Request, Answer               string // examples
	Errors                        []row
}

// field is a parameter, or a field of a body. A field in a list or object has the names of
// both: data[].id.
type field struct {
	Name, Type, Text string
	Required         bool
	See              string // id of the endpoint that lists the fields of this one
}

type (
	described struct {
		Description   string
		DescriptionFR string `json:"x-fr-description"`
	}
	parameter struct {
		described
		Ref      string `json:"$ref"`
		Name     string
		Required bool
		Schema   schema
	}
	schema struct {
		described
		Ref        string `json:"$ref"`
		Type       any    // a name, or a list of names
		Enum       []string
		Properties ordered[schema]
		Required   []string
		Items      *schema
		OneOf      []schema
		FieldsOf   string `json:"x-fields-of"`
	}
	content struct {
		Content map[string]struct {
			Schema   schema
			Examples ordered[struct{ Value json.RawMessage }]
		}
	}
	operation struct {
		described
		ID          string `json:"operationId"`
		Summary     string
		SummaryFR   string `json:"x-fr-summary"`
		Parameters  []parameter
		RequestBody content
		Responses   map[string]content
	}
	openAPIDocument struct {
		Paths, Webhooks ordered[ordered[operation]]
		Components      struct {
			Parameters map[string]parameter
			Schemas    map[string]schema
		}
	}
)

// ordered is a JSON object whose members keep their order.
type ordered[T any] []struct {
	Name  string
	Value T
}

func (o *ordered[T]) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.Token(); err != nil { // {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		*o = append(*o, struct {
			Name  string
			Value T
		}{Name: fmt.Sprint(name)})
		if err := decoder.Decode(&(*o)[len(*o)-1].Value); err != nil {
			return err
		}
	}
	return nil
}

// endpoints returns the endpoints and the webhooks of the document, in its order.
func endpoints(text, language string) (paths, hooks []endpoint, err error) {
	var d openAPIDocument
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return nil, nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	describe := func(all ordered[ordered[operation]], prefix string) (list []endpoint) {
		for _, path := range all {
			for _, o := range path.Value {
				list = append(list, d.endpoint(strings.ToUpper(o.Name), prefix+path.Name, &o.Value, language))
			}
		}
		return list
	}
	return describe(d.Paths, "/v1"), describe(d.Webhooks, ""), nil
}

func (d *openAPIDocument) endpoint(method, path string, o *operation, language string) endpoint {
	e := endpoint{ID: o.ID, Method: method, Path: path, Title: words{o.Summary, o.SummaryFR}.of(language),
		Text: o.in(language)}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters[p.Ref[strings.LastIndexByte(p.Ref, '/')+1:]]
		}
		e.Parameters = append(e.Parameters, field{Name: p.Name, Type: p.Schema.typeIn(language), Text: p.in(language),
			Required: p.Required})
	}
	e.Body, e.Request = d.body(o.RequestBody, language)
	e.Response, e.Answer = d.body(o.Responses["200"], language)
	for _, r := range refusals {
		if r.code != "" && r.isOf(o.ID) && !slices.ContainsFunc(
			e.Errors, func(other row) bool { return other.Code == r.code }) {
			e.Errors = append(e.Errors, row{Status: r.status, Code: r.code})
		}
	}
	return e
}

// body returns the fields of a body, and its first example.
func (d *openAPIDocument) body(c content, language string) (fields []field, example string) {
	media := c.Content["application/json"]
	if len(media.Examples) > 0 {
		var out bytes.Buffer
		if json.Indent(&out, media.Examples[0].Value.Value, "", "  ") == nil {
			example = out.String()
		}
	}
	return d.fields("", media.Schema, language), example
}

// fields returns an object's fields, each followed by its own fields.
func (d *openAPIDocument) fields(prefix string, s schema, language string) (all []field) {
	s = d.resolve(s)
	for _, p := range s.Properties {
		v := d.resolve(p.Value)
		f := field{Name: prefix + p.Name, Type: v.typeIn(language), Text: v.in(language),
			Required: slices.Contains(s.Required, p.Name), See: v.FieldsOf}
		all = append(all, f)
		switch {
		case f.See != "":
		case v.Items != nil:
			all = append(all, d.fields(f.Name+"[].", *v.Items, language)...)
		default:
			all = append(all, d.fields(f.Name+".", v, language)...)
		}
	}
	return all
}

func (d *openAPIDocument) resolve(s schema) schema {
	if s.Ref != "" {
		return d.Components.Schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]
	}
	return s
}

// in returns the description in a language.
func (t described) in(language string) string {
	return words{t.Description, t.DescriptionFR}.of(language)
}

// typeIn returns the names of the types in a language, or the values that there are.
func (s *schema) typeIn(language string) string {
	if len(s.OneOf) > 0 {
		return s.OneOf[0].typeIn(language)
	}
	if len(s.Enum) > 0 {
		return strings.Join(s.Enum, ", ")
	}
	names := strings.Fields(strings.Trim(fmt.Sprint(s.Type), "[]"))
	for i, name := range names {
		names[i] = words{name, typesFR[name]}.of(language)
	}
	return strings.Join(names, words{" or ", " ou "}.of(language))
}

var typesFR = map[string]string{"string": "chaîne", "integer": "entier", "boolean": "booléen", "array": "liste",
	"object": "objet", "null": "null"}
