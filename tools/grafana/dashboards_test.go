package grafana

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const folder = "../../deployments/grafana/dashboards"

var update = flag.Bool("update", false, "write the dashboards anew")

// TestFiles keeps the JSON files equal to the code.
func TestFiles(t *testing.T) {
	dashboards := Dashboards()
	for name, d := range dashboards {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(d); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name+".json")
		if *update {
			if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s is not what the code says (%v): go test ./tools/grafana -update", path, err)
		}
	}
	files, err := filepath.Glob(folder + "/*")
	if err != nil || len(files) != len(dashboards) {
		t.Errorf("%d files for %d dashboards (%v)", len(files), len(dashboards), err)
	}
}

// TestShape checks what Grafana would not tell until somebody looks.
func TestShape(t *testing.T) {
	uids := map[string]bool{}
	for name, d := range Dashboards() {
		if uids[d.UID] || len(d.UID) > 40 || d.Title == "" || d.Description == "" {
			t.Errorf("%s: uid %q, title %q", name, d.UID, d.Title)
		}
		uids[d.UID] = true
		titles := map[string]bool{}
		taken := map[[2]int]string{}
		for _, p := range d.Panels {
			if p.Title == "" || titles[p.Title+p.Type] || len(p.Targets) == 0 {
				t.Errorf("%s: panel %q is empty, or there twice", name, p.Title)
			}
			titles[p.Title+p.Type] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other, there := taken[[2]int{x, y}]; there || x >= 24 {
						t.Fatalf("%s: %q lies on %q, or outside", name, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			refs := map[string]bool{}
			for _, target := range p.Targets {
				if refs[target.RefID] || target.Datasource != source || strings.TrimSpace(target.Expr) == "" {
					t.Errorf("%s: %q has a bad query %+v", name, p.Title, target)
				}
				refs[target.RefID] = true
			}
			if th := p.FieldConfig.Defaults.Thresholds; th != nil {
				for i, s := range th.Steps {
					if (s.Value == nil) != (i == 0) || i > 1 && *s.Value <= *th.Steps[i-1].Value {
						t.Errorf("%s: %q: thresholds do not rise", name, p.Title)
					}
				}
			}
		}
	}
}
