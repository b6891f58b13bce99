package grafana

// The part of Grafana's dashboard JSON that is used here (schema version 39,
// Grafana 10 and newer).

// Dashboard is one dashboard.
type Dashboard struct {
	UID           string         `json:"uid"`
	Title         string         `json:"title"`
	Description   string         `json:"description"`
	Tags          []string       `json:"tags"`
	Timezone      string         `json:"timezone"`
	SchemaVersion int            `json:"schemaVersion"`
	Editable      bool           `json:"editable"`
	GraphTooltip  int            `json:"graphTooltip"`
	Refresh       string         `json:"refresh"`
	Time          TimeRange      `json:"time"`
	Links         []Link         `json:"links"`
	Templating    Templating     `json:"templating"`
	Annotations   AnnotationList `json:"annotations"`
	Panels        []Panel        `json:"panels"`
}

// TimeRange is the time that is shown.
type TimeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Link leads to the other dashboards.
type Link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	Tags        []string `json:"tags"`
	URL         string   `json:"url"`
	Icon        string   `json:"icon"`
	Tooltip     string   `json:"tooltip"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
	TargetBlank bool     `json:"targetBlank"`
}

// Templating is the variables of a dashboard.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is one of them.
type Variable struct {
	Name       string      `json:"name"`
	Label      string      `json:"label"`
	Type       string      `json:"type"`
	Query      any         `json:"query"`
	Datasource *Datasource `json:"datasource,omitempty"`
	Refresh    int         `json:"refresh,omitempty"`
	Multi      bool        `json:"multi"`
	IncludeAll bool        `json:"includeAll"`
	AllValue   string      `json:"allValue,omitempty"`
	Sort       int         `json:"sort,omitempty"`
}

// AnnotationList is what is marked in graphs.
type AnnotationList struct {
	List []Annotation `json:"list"`
}

// Annotation marks alerts in graphs.
type Annotation struct {
	Name        string     `json:"name"`
	Datasource  Datasource `json:"datasource"`
	Enable      bool       `json:"enable"`
	Hide        bool       `json:"hide"`
	IconColor   string     `json:"iconColor"`
	Target      Target     `json:"target"`
	TitleFormat string     `json:"titleFormat,omitempty"`
	TextFormat  string     `json:"textFormat,omitempty"`
}

// Datasource names where the data comes from.
type Datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Panel is one panel.
type Panel struct {
	ID              int              `json:"id"`
	Type            string           `json:"type"`
	Title           string           `json:"title"`
	Description     string           `json:"description,omitempty"`
	Datasource      *Datasource      `json:"datasource,omitempty"`
	GridPos         GridPos          `json:"gridPos"`
	Targets         []Target         `json:"targets,omitempty"`
	FieldConfig     FieldConfig      `json:"fieldConfig"`
	Options         map[string]any   `json:"options"`
	Transformations []Transformation `json:"transformations,omitempty"`
}

// GridPos is a place in the grid of 24 columns.
type GridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// Target is a query.
type Target struct {
	RefID        string     `json:"refId"`
	Datasource   Datasource `json:"datasource"`
	Expr         string     `json:"expr"`
	LegendFormat string     `json:"legendFormat,omitempty"`
	Format       string     `json:"format,omitempty"`
	Instant      bool       `json:"instant,omitempty"`
	Range        bool       `json:"range,omitempty"`
}

// FieldConfig says how values are shown.
type FieldConfig struct {
	Defaults  FieldDefaults `json:"defaults"`
	Overrides []Override    `json:"overrides"`
}

// FieldDefaults holds for every field.
type FieldDefaults struct {
	Unit       string         `json:"unit,omitempty"`
	Decimals   *int           `json:"decimals,omitempty"`
	Min        *float64       `json:"min,omitempty"`
	Max        *float64       `json:"max,omitempty"`
	NoValue    string         `json:"noValue,omitempty"`
	Color      *FieldColor    `json:"color,omitempty"`
	Thresholds *Thresholds    `json:"thresholds,omitempty"`
	Mappings   []Mapping      `json:"mappings,omitempty"`
	Custom     map[string]any `json:"custom,omitempty"`
}

// FieldColor says where a colour comes from.
type FieldColor struct {
	Mode string `json:"mode"`
}

// Thresholds are colours by value.
type Thresholds struct {
	Mode  string          `json:"mode"`
	Steps []ThresholdStep `json:"steps"`
}

// ThresholdStep is a colour from a value on; nil is minus infinity.
type ThresholdStep struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

// Mapping shows values as words.
type Mapping struct {
	Type    string                 `json:"type"`
	Options map[string]MappedValue `json:"options"`
}

// MappedValue is such a word.
type MappedValue struct {
	Text  string `json:"text"`
	Color string `json:"color,omitempty"`
	Index int    `json:"index"`
}

// Override is for one field of a table.
type Override struct {
	Matcher    Matcher    `json:"matcher"`
	Properties []Property `json:"properties"`
}

// Matcher picks the field.
type Matcher struct {
	ID      string `json:"id"`
	Options string `json:"options"`
}

// Property is what is overridden.
type Property struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// Transformation works on what the queries gave.
type Transformation struct {
	ID      string         `json:"id"`
	Options map[string]any `json:"options"`
}
