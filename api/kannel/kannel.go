// Package kannel lets programs that were written for Kannel send messages: GET and POST /cgi-bin/sendsms, with the
// answers of Kannel 1.4.5. It is a translation. Each request becomes one to the public API in this process, which
// authenticates, limits, validates and charges it as any other; docs/kannel.md describes the interface.
//
// The password is in the query string. Nothing here logs a request, and no error has its address.
package kannel

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intumwa/intake"
	"intumwa/internal/inprocess"
	"intumwa/messages"
)

// Path is where messages are sent.
const Path = "/cgi-bin/sendsms"

// The answers of Kannel.
const (
	accepted     = "0: Accepted for delivery"
	queued       = "3: Queued for later delivery"
	unauthorized = "Authorization failed for sendsms"
	unroutable   = "Not routable. Do not try again."
	later        = "Temporal failure, try again later."
	unknown      = "Unknown request."
)

// maxBody bounds the form of a POST. A text of the greatest length to 500 numbers is a third of it.
const maxBody = 64 << 10

// Options configures the interface.
type Options struct {
	API           http.Handler       // the public API
	CheckCallback func(string) error // refuses a dlr-url (webhooks.CheckCallback)
	Log           *slog.Logger
	Metrics       prometheus.Registerer
}

type door struct {
	Options

	requests *prometheus.CounterVec
}

// New returns the interface's handler.
func New(opts Options) http.Handler {
	d := &door{opts, promauto.With(opts.Metrics).NewCounterVec(
		prometheus.CounterOpts{Name: "intumwa_kannel_requests_total",
			Help: "Requests to the Kannel interface, by status of the answer."}, []string{"status"})}
	for _, status := range []int{http.StatusAccepted, http.StatusBadRequest, http.StatusForbidden,
		http.StatusServiceUnavailable} {
		d.requests.WithLabelValues(strconv.Itoa(status))
	}
	return d
}

// ServeHTTP handles a request.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, text := http.StatusServiceUnavailable, later
	defer func() {
		if p := recover(); p != nil { // net/http would close the connection without an answer
			d.Log.Error("panic in a handler", "event", "handler_panicked", "method", r.Method, "route", Path, "panic", p,
				"stack", string(debug.Stack()))
			status, text = http.StatusServiceUnavailable, later
		}
		d.requests.WithLabelValues(strconv.Itoa(status)).Inc()
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}()
	form, refused := read(r)
	switch {
	case r.URL.Path != Path:
		status, text = http.StatusNotFound, unknown
	case r.Method != http.MethodGet && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, POST")
		status, text = http.StatusMethodNotAllowed, unknown
	case refused != 0:
		status, text = refused, "Invalid content-type"
		if refused == http.StatusRequestEntityTooLarge {
			text = "Request too large, rejected"
		}
	default:
		status, text = d.send(w, r, form)
	}
}

// read returns the parameters of a request, those of the body first; refused is the status of one that cannot be read.
func read(r *http.Request) (form parameters, refused int) {
	form = parameters{}
	if r.Method == http.MethodPost {
		if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind),
			"application/x-www-form-urlencoded") {
			return nil, http.StatusBadRequest
		}
		body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
		switch tooLarge := (*http.MaxBytesError)(nil); {
		case errors.As(err, &tooLarge):
			return nil, http.StatusRequestEntityTooLarge
		case err != nil:
			return nil, http.StatusBadRequest
		}
		form.add(string(body))
	}
	form.add(r.URL.RawQuery)
	return form, 0
}

// send passes a request on to the API. One with a mistake of its own is passed on without fields: the API checks who
// sends it, counts it, and refuses it.
func (d *door) send(w http.ResponseWriter, r *http.Request, form parameters) (status int, text string) {
	m, mistake := form.message(d.CheckCallback)
	path, body := "/v1/sms", []byte("{}")
	ctx := r.Context()
	if mistake == "" {
		path, body = m.request()
		ctx = intake.WithChannel(intake.WithCallback(ctx, m.callback), messages.Kannel)
		if m.part != nil {
			ctx = intake.WithPart(ctx, *m.part)
		}
	}
	headers := http.Header{}
	if id := r.Header["X-Request-Id"]; id != nil {
		headers["X-Request-Id"] = id
	}
	answer, err := d.post(ctx, r, path, form.bearer(), body, headers)
	if err != nil {
		return http.StatusServiceUnavailable, later
	}
	given := answer.Header()
	for _, name := range []string{"Content-Type", "Content-Length", "Connection"} {
		given.Del(name)
	}
	code := strings.Join(given["X-Error-Code"], "")
	if mistake != "" && answer.Status == http.StatusUnprocessableEntity {
		given.Del("X-Error-Code")
	}
	maps.Copy(w.Header(), given)
	switch {
	case answer.Status == http.StatusOK && m.deferred:
		return http.StatusAccepted, queued
	case answer.Status == http.StatusOK:
		return http.StatusAccepted, accepted
	case answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden:
		return http.StatusForbidden, unauthorized
	case answer.Status == http.StatusTooManyRequests || answer.Status >= http.StatusInternalServerError:
		return http.StatusServiceUnavailable, later
	case mistake != "":
		return http.StatusBadRequest, mistake
	case code == "no_carrier":
		return http.StatusForbidden, unroutable
	}
	return http.StatusBadRequest, reasonOf(answer.Body.Bytes())
}

func (d *door) post(ctx context.Context, r *http.Request, path, bearer string, body []byte, headers http.Header) (
	*inprocess.Response, error) {
	answer, err := inprocess.Post(ctx, d.API, r, path, bearer, string(body), headers)
	if err != nil {
		d.Log.Error("request failed", "event", "request_failed", "path", Path, "error", err)
	}
	return answer, err
}

// ofItem is the beginning of a text of the API about one message of a bulk send.
var ofItem = regexp.MustCompile(`^The messages\.(\d+)\.`)

// names are the parameters that fields of the API come from.
var names = strings.NewReplacer("phone_number", "to", "client_reference", "account", "send_at", "deferred", "expire_at",
	"validity", "messages field", "to field")

// reasonOf returns the first reason of a refusal of the API, in the parameters' names.
func reasonOf(body []byte) string {
	var view struct {
		Message string
		Errors  json.RawMessage
	}
	_ = json.Unmarshal(body, &view) // the API's own
	text := view.Message
	for d := json.NewDecoder(strings.NewReader(string(view.Errors))); ; { // the first text of {"field": ["text", …], …}
		token, err := d.Token()
		if err != nil {
			break
		}
		if token == json.Delim('[') {
			if token, err = d.Token(); err == nil {
				text, _ = token.(string)
			}
			break
		}
	}
	if item := ofItem.FindStringSubmatch(text); item != nil {
		index, _ := strconv.Atoi(item[1])
		text = "Receiver #" + strconv.Itoa(index+1) + ": the " + text[len(item[0]):]
	}
	return names.Replace(text)
}
