package api

import (
	"slices"
	"strings"
	"testing"

	"intumwa/internal/throttle"
)

// The OpenAPI document has exactly the served endpoints.
func TestDocumentListsTheRoutes(t *testing.T) {
	a := &API{Deps: Deps{Throttle: throttle.New(nil, throttle.Options{})}}
	var served, described []string
	for _, e := range a.table() {
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
	if got := len(document().Webhooks); got != 6 {
		t.Errorf("the document has %d webhooks", got)
	}
}
