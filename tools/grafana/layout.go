package grafana

import "strings"

var source = Datasource{Type: "prometheus", UID: "${datasource}"}

// page makes a dashboard of panels, which are laid out in their order.
func page(uid, title, about, span string, variables []Variable, panels ...Panel) Dashboard {
	x, y, tallest := 0, 0, 0
	for i := range panels {
		at := &panels[i].GridPos
		if x+at.W > 24 {
			x, y, tallest = 0, y+tallest, 0
		}
		at.X, at.Y = x, y
		x += at.W
		tallest = max(tallest, at.H)
		panels[i].ID = i + 1
	}
	return Dashboard{
		UID: "intumwa-" + uid, Title: "Intumwa: " + title, Description: about, Tags: []string{"intumwa"},
		Timezone: "browser", SchemaVersion: 39, GraphTooltip: 1, Refresh: "10s", Time: TimeRange{From: "now-" + span, To: "now"},
		Links: []Link{{Title: "Intumwa", Type: "dashboards", Tags: []string{"intumwa"}, Icon: "external link", IncludeVars: true, KeepTime: true}},
		Templating: Templating{List: append([]Variable{{Name: "datasource", Label: "Prometheus", Type: "datasource", Query: "prometheus"}},
			variables...)},
		Annotations: AnnotationList{List: []Annotation{{Name: "Pages", Datasource: source, Enable: true, IconColor: now,
			Target: Target{RefID: "Pages", Datasource: source, Expr: `ALERTS{alertstate="firing", severity="page"}`, Range: true}, TitleFormat: "{{alertname}}", TextFormat: "{{carrier}} {{link}}"}}},
		Panels: panels,
	}
}

// choice is a variable with the values of a label.
func choice(name, label, query string) Variable {
	return Variable{Name: name, Label: label, Type: "query", Query: map[string]string{"query": query, "refId": "values"},
		Datasource: &source, Refresh: 2, Multi: true, IncludeAll: true, AllValue: ".+", Sort: 1}
}

func (p panel) make(kind string, options, custom map[string]any) Panel {
	field := FieldDefaults{Unit: p.unit, Decimals: p.decimals, Max: p.max, Thresholds: p.thresholds, Mappings: p.mappings, Custom: custom,
		Color: &FieldColor{Mode: "thresholds"}}
	if kind == "timeseries" {
		field.Color.Mode = "palette-classic"
		field.Min = ptr(0.0)
	}
	made := Panel{Type: kind, Title: p.title, Description: p.about, Datasource: &source, GridPos: GridPos{H: p.height, W: p.width},
		FieldConfig: FieldConfig{Defaults: field, Overrides: []Override{}}, Options: options}
	for i, q := range p.queries {
		made.Targets = append(made.Targets, Target{RefID: string(rune('A' + i)), Datasource: source, Expr: q.expr,
			LegendFormat: q.legend, Instant: kind != "timeseries", Range: kind == "timeseries"})
	}
	return made
}

// number shows one value, large.
func number(p panel) Panel {
	if p.height == 0 {
		p.height = 4
	}
	if p.thresholds == nil {
		p.thresholds = ptr(steps("text"))
	}
	made := p.make("stat", map[string]any{
		"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		"colorMode":     "background", "graphMode": "none", "justifyMode": "center", "textMode": "auto", "orientation": "auto",
	}, nil)
	made.FieldConfig.Defaults.NoValue = "–"
	return made
}

// graph shows values over time.
func graph(p panel) Panel {
	if p.width == 0 {
		p.width = 12
	}
	if p.height == 0 {
		p.height = 8
	}
	custom := map[string]any{"drawStyle": "line", "lineWidth": 2, "fillOpacity": 8, "showPoints": "never", "spanNulls": false,
		"stacking":        map[string]any{"mode": "none", "group": "A"},
		"thresholdsStyle": map[string]any{"mode": "off"}}
	if p.stack {
		custom["stacking"] = map[string]any{"mode": "normal", "group": "A"}
		custom["fillOpacity"] = 30
	}
	if p.lines {
		custom["thresholdsStyle"] = map[string]any{"mode": "dashed"}
	}
	return p.make("timeseries", map[string]any{
		"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}},
		"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
	}, custom)
}

// column is one column of a table: a query that gives one value a row.
type column struct {
	title, expr, unit string
	width             int
	decimals          *int
	thresholds        *Thresholds
	mappings          []Mapping
	gauge             bool // drawn as a bar from 0 to 1
}

// table has a row for each set of the labels that key names.
func table(p panel, keys []string, columns ...column) Panel {
	for _, c := range columns {
		p.queries = append(p.queries, query{expr: c.expr})
	}
	made := p.make("table", map[string]any{"showHeader": true, "cellHeight": "lg", "footer": map[string]any{"show": false, "reducer": []string{}, "countRows": false},
		"sortBy": []map[string]any{}}, map[string]any{"align": "auto", "filterable": false})
	made.FieldConfig.Defaults.NoValue = "–"
	rename, order, hide := map[string]any{}, map[string]any{}, map[string]any{"Time": true}
	for i, key := range keys {
		rename[key] = strings.ToUpper(key[:1]) + key[1:]
		order[key] = i
	}
	for i, c := range columns {
		target := &made.Targets[i]
		target.Format = "table"
		value := "Value #" + target.RefID
		if len(columns) == 1 {
			value = "Value"
		}
		rename[value], order[value] = c.title, len(keys)+i
		override := Override{Matcher: Matcher{ID: "byName", Options: c.title}, Properties: []Property{{ID: "unit", Value: c.unit}}}
		add := func(id string, value any) {
			override.Properties = append(override.Properties, Property{ID: id, Value: value})
		}
		if c.width > 0 {
			add("custom.width", c.width)
		}
		if c.decimals != nil {
			add("decimals", *c.decimals)
		}
		if c.mappings != nil {
			add("mappings", c.mappings)
		}
		if c.thresholds != nil {
			add("thresholds", *c.thresholds)
		}
		switch {
		case c.gauge:
			add("min", 0)
			add("max", 1)
			add("custom.cellOptions", map[string]any{"type": "gauge", "mode": "basic", "valueDisplayMode": "text"})
		case c.thresholds != nil || c.mappings != nil:
			add("custom.cellOptions", map[string]any{"type": "color-background", "mode": "basic"})
		}
		made.FieldConfig.Overrides = append(made.FieldConfig.Overrides, override)
	}
	made.Transformations = []Transformation{{ID: "merge", Options: map[string]any{}},
		{ID: "organize", Options: map[string]any{"excludeByName": hide, "indexByName": order, "renameByName": rename}}}
	return made
}
