package api

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"
)

const (
	requestKey    = "request" // of the request's id, among what a request is told about itself
	requestHeader = "X-Request-Id"

	maxRequestID = 128 // characters of a client's own
)

// identify names the request in its answer and in the log: as the client named it in
// X-Request-Id, or by a ULID.
func (a *API) identify(c *gin.Context) {
	id := requestID(c.Request)
	c.Set(requestKey, id)
	header(c, requestHeader, id)
}

// requestID is the client's own name for a request if it can be one, else a new one.
func requestID(r *http.Request) string {
	if given := r.Header[requestHeader]; len(given) == 1 && isRequestID(given[0]) {
		return given[0]
	}
	return ulid.Make().String()
}

// isRequestID tells what may be in a log line and a header as it is: 1 to 128 ASCII
// letters, digits and -_.:=/+@, which UUIDs, ULIDs and the ids of proxies keep to.
func isRequestID(text string) bool {
	if text == "" || len(text) > maxRequestID {
		return false
	}
	for i := range len(text) {
		b := text[i]
		if (b < '0' || b > '9') && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') && !strings.ContainsRune("-_.:=/+@", rune(b)) {
			return false
		}
	}
	return true
}

// log is the log of a request: its lines bear the request's id.
func (a *API) log(c *gin.Context) *slog.Logger {
	return a.opts.Log.With("request_id", c.GetString(requestKey))
}

// RefuseAmbiguous answers a request that can be read in two ways, which never comes
// to a handler.
func RefuseAmbiguous(w http.ResponseWriter, r *http.Request) {
	w.Header()["X-Error-Code"] = []string{ambiguousRequest.code}
	w.Header()[requestHeader] = []string{requestID(r)}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(ambiguousRequest.status)
	_, _ = w.Write(encoded(message{ambiguousRequest.text}))
}
