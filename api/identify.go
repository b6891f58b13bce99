package api

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/oklog/ulid/v2"
)

const (
	requestKey    = "request" // of the request's id, in the gin.Context
	requestHeader = "X-Request-Id"

	maxRequestID = 128 // characters of a client's own
)

// identify sets the request's id in the response and in the log: the client's X-Request-Id, or a new ULID.
func (a *API) identify(c *gin.Context) {
	id := requestID(c.Request)
	c.Set(requestKey, id)
	setHeader(c, requestHeader, id)
}

// requestID returns the client's id if it is valid, else a new one.
func requestID(r *http.Request) string {
	if given := r.Header[requestHeader]; len(given) == 1 && isRequestID(given[0]) {
		return given[0]
	}
	return ulid.Make().String()
}

// isRequestID reports whether text is safe in a log line and a header: 1 to 128 ASCII letters, digits and -_.:=/+@,
// which covers UUIDs, ULIDs and the ids of proxies.
func isRequestID(text string) bool {
	if text == "" || len(text) > maxRequestID {
		return false
	}
	for i := range len(text) {
		b := text[i]
		if (b < '0' || b > '9') && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') &&
			!strings.ContainsRune("-_.:=/+@", rune(b)) {
			return false
		}
	}
	return true
}

// log returns the logger of a request: its lines have the request_id.
func (a *API) log(c *gin.Context) *slog.Logger {
	return a.opts.Log.With("request_id", c.GetString(requestKey))
}
