// Package inprocess calls an HTTP handler without a network: for pages and interfaces that are another form of a
// request to the public API.
package inprocess

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
)

// Response is what a handler answered.
type Response struct {
	Status int
	Body   bytes.Buffer

	header http.Header
}

// Post sends a JSON text to a path of a handler on behalf of the client of another request. The handler sees the
// address of that client.
func Post(ctx context.Context, handler http.Handler, of *http.Request, path, bearer, body string, headers http.Header) (
	*Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("a request to %s: %w", path, err)
	}
	r.RemoteAddr = of.RemoteAddr // wrong keys count against this address
	r.Header["X-Forwarded-For"] = of.Header["X-Forwarded-For"]
	r.Header.Set("Authorization", "Bearer "+bearer)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	for name, values := range headers {
		r.Header[name] = values
	}
	w := &Response{header: http.Header{}}
	handler.ServeHTTP(w, r)
	w.Status = cmp.Or(w.Status, http.StatusOK)
	return w, nil
}

// Header implements [http.ResponseWriter].
func (w *Response) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *Response) WriteHeader(status int) { w.Status = cmp.Or(w.Status, status) }

// Write implements [http.ResponseWriter].
func (w *Response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.Body.Write(p)
}
