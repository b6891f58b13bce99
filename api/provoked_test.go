package api

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"

	"intumwa/inbound/handsets"
)

// provoked has the shapes of the texts that the tests of this package got in refusals.
var provoked sync.Map

// provoke notes the texts in a refusal's body.
func provoke(body []byte) {
	var got any
	_ = json.Unmarshal(body, &got)
	for _, text := range shapes(got) {
		provoked.Store(text, true)
	}
}

// TestFullOptOutList: the error of a full list is the documented refusal.
func TestFullOptOutList(t *testing.T) {
	a := &API{opts: Options{Log: slog.New(slog.DiscardHandler)}, metrics: newMetrics(nil)}
	answer := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(answer)
	c.Request = httptest.NewRequest("POST", "/v1/opt-outs", nil)
	a.writeError(c, handsets.ErrListFull)
	if answer.Code != 400 || answer.Body.String() != messageJSON(optOutsFull.text) {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	provoke(answer.Body.Bytes())
}

// unprovoked returns 1 and prints the documented refusals that no test got: the reference names no refusal that does
// not exist. It returns 0 if only some of the tests ran.
func unprovoked() int {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return 0
		}
	}
	code := 0
	for _, r := range refusals {
		operation, _, _ := strings.Cut(string(r.on), " ")
		texts := shapes(r.example(operation))
		if _, got := provoked.Load(texts[len(texts)-1]); !got { // of a 422 the field's text
			fmt.Fprintf(os.Stderr, "the reference documents a refusal that no test got: %d %s: %s\n", r.status, r.code,
				texts[len(texts)-1])
			code = 1
		}
	}
	return code
}
