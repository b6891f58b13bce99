package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
)

// TestChangesEnd: a change continues when its client disconnects, but not without a limit: a COMMIT may hang.
func TestChangesEnd(t *testing.T) {
	client, disconnect := context.WithCancel(t.Context())
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequestWithContext(client, http.MethodDelete, "/v1/sms/x", nil)
	ctx, cancel := background(c)
	defer cancel()
	disconnect()
	if err := ctx.Err(); err != nil {
		t.Errorf("when the client disconnects: %v", err)
	}
	if ends, limited := ctx.Deadline(); !limited || time.Until(ends) > changeTimeout {
		t.Errorf("it ends at %s, %t", ends, limited)
	}
}
