package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"intumwa/dispatcher"
	"intumwa/smpp"
)

// Bounds of a trace, in seconds.
const (
	traceDefault = 60
	traceMost    = 3600
)

// traceLink is GET /debug/links/{name}/trace?seconds=N: the PDUs of a link of
// this process for N seconds, one JSON object a line, redacted (smpp.TracedPDU).
// 404: there is no such link; 409: another process holds it.
func traceLink(d *dispatcher.Dispatcher, log *slog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		seconds := traceDefault
		if text := r.FormValue("seconds"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > traceMost {
				state(w, http.StatusBadRequest, "refused", "seconds must be from 1 to "+strconv.Itoa(traceMost))
				return
			}
			seconds = n
		}
		span := time.Duration(seconds) * time.Second
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(span + 10*time.Second)) // else the listener's own holds
		ctx, cancel := context.WithTimeout(r.Context(), span)
		defer cancel()
		link, shown := r.PathValue("name"), 0
		log.Info("link is traced", "link", link, "seconds", seconds)
		w.Header().Set("Content-Type", "application/x-ndjson")
		lines := json.NewEncoder(plainJSON{w})
		lines.SetEscapeHTML(false)
		err := d.Trace(ctx, link, func(pdu smpp.TracedPDU) error {
			shown++
			if err := lines.Encode(pdu); err != nil {
				return err
			}
			return control.Flush()
		})
		switch {
		case shown > 0 || err == nil: // whoever looked has gone, or the time is up
		case errors.Is(err, dispatcher.ErrNoLink):
			state(w, http.StatusNotFound, "refused", err.Error())
		case errors.Is(err, dispatcher.ErrNotHeld):
			state(w, http.StatusConflict, "refused", err.Error())
		default:
			state(w, http.StatusServiceUnavailable, "refused", err.Error())
		}
	}
}
