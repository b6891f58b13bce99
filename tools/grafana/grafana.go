// Package grafana is the dashboards as code: each is a Go function, and the JSON files in deployments/grafana/dashboards
// are what they give. A test keeps the two equal; `go test ./tools/grafana -update` writes the files anew.
//
// What is well has no colour, red means now, orange means soon.
package grafana

// Dashboards are all dashboards by file name, without .json.
func Dashboards() map[string]Dashboard {
	return map[string]Dashboard{
		"wall":     wall(),
		"carrier":  carrier(),
		"api":      api(),
		"webhooks": webhooks(),
		"billing":  billing(),
		"runtime":  runtime(),
	}
}

// Colours by meaning.
const (
	calm   = "transparent"
	well   = "green"
	soon   = "orange"
	now    = "red"
	worst  = "dark-red"
	asleep = "blue"
)

// step is a threshold: from a value on, a colour.
type step struct {
	from   float64
	colour string
}

// steps are thresholds; the first colour holds below the first value.
func steps(first string, rest ...step) Thresholds {
	t := Thresholds{Mode: "absolute", Steps: []ThresholdStep{{Color: first}}}
	for _, s := range rest {
		value := s.from
		t.Steps = append(t.Steps, ThresholdStep{Color: s.colour, Value: &value})
	}
	return t
}

// word maps a value to a text and a colour.
type word struct {
	value, text, colour string
}

func words(list ...word) []Mapping {
	options := make(map[string]MappedValue, len(list))
	for i, w := range list {
		options[w.value] = MappedValue{Text: w.text, Color: w.colour, Index: i}
	}
	return []Mapping{{Type: "value", Options: options}}
}

// query is one PromQL expression and the name its series go by.
type query struct {
	expr, legend string
}

// panel is what the layout is made from.
type panel struct {
	title, about string
	unit         string
	width        int // of 24
	height       int
	queries      []query
	thresholds   *Thresholds
	mappings     []Mapping
	lines        bool // thresholds drawn in the graph
	stack        bool
	decimals     *int
	max          *float64
}

func ptr[T any](v T) *T { return &v }
