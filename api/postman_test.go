package api

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

// The collection has a request for each operation of the document, and no other, with
// a body where the document has one.
func TestPostmanCollection(t *testing.T) {
	w := newWorld(t, worldOptions{})
	got := w.do("", "GET", "/docs/"+collectionName, "")
	var collection struct {
		Item []struct {
			Name string
			Item []struct {
				Name     string
				Request  postmanRequest
				Response []struct{ Name string }
			}
		}
		Variable []postmanField
	}
	if err := json.Unmarshal([]byte(got.body), &collection); err != nil || got.status != 200 {
		t.Fatalf("%d %v", got.status, err)
	}
	if base := collection.Variable[0]; base.Key != "base_url" || base.Value != w.server.URL+"/v1" {
		t.Errorf("its address is %+v", base)
	}
	var requests, operations []string
	for _, folder := range collection.Item {
		for _, item := range folder.Item {
			path := strings.TrimPrefix(item.Request.URL.Raw, "{{base_url}}")
			for _, v := range item.Request.URL.Variable {
				if v.Value == "" {
					t.Errorf("%s: %s has no example", item.Name, v.Key)
				}
				path = strings.Replace(path, ":"+v.Key, "{"+v.Key+"}", 1)
			}
			requests = append(requests, item.Request.Method+" "+path)
			if item.Request.Body != nil && !json.Valid([]byte(item.Request.Body.Raw)) || item.Request.Body == nil && item.Request.Method == "PUT" {
				t.Errorf("%s: its body is %+v", item.Name, item.Request.Body)
			}
			if len(item.Response) < 5 {
				t.Errorf("%s has %d examples", item.Name, len(item.Response))
			}
		}
	}
	for path, item := range document().Paths.Map() {
		for method := range item.Operations() {
			operations = append(operations, method+" "+path)
		}
	}
	slices.Sort(requests)
	slices.Sort(operations)
	if !slices.Equal(requests, operations) {
		t.Errorf("requests\n%v\noperations\n%v", requests, operations)
	}
}

// Newman, which is Postman without its window, runs the collection as it was fetched:
// every request is one that the gateway understands.
func TestNewmanRunsTheCollection(t *testing.T) {
	npm, node := testenv.Tool(t, "npm"), testenv.Tool(t, "node")
	s, w := newWorkshop(t)
	w.told("live", 1)
	s.copy("newman/package.json", "package.json")
	s.write("collection.json", w.do("", "GET", "/docs/"+collectionName, "").body)
	s.fetch(npm, "install", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--prefer-offline")
	s.run(node, "node_modules/newman/bin/newman.js", "run", "collection.json", "--env-var", "token="+w.tokens["live"],
		"--reporters", "json", "--reporter-json-export", "report.json")
	text, err := os.ReadFile(filepath.Join(s.dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Run struct {
			Executions []struct {
				Item     struct{ Name string }
				Response struct{ Code int }
			}
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"Look up a batch": 404, "List a batch's messages": 404, "Look up a message": 404,
		"Cancel a message": 404, "Cancel a batch": 404, "Cancel a batch, by its short path": 404, "Confirm the test number": 400, "One message from a handset": 404}
	ran := 0
	for _, e := range report.Run.Executions {
		ran++
		expected := want[e.Item.Name]
		if expected == 0 {
			expected = 200
		}
		if e.Response.Code != expected {
			t.Errorf("%s: %d, not %d", e.Item.Name, e.Response.Code, expected)
		}
	}
	if operations := strings.Count(openAPIText, `"x-refusals"`); ran != operations {
		t.Errorf("%d of %d requests ran", ran, operations)
	}
}
