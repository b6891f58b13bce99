package carriersim

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
	"net/http"
	"slices"
	"strconv"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// shownMessages is how many of the last messages the page shows.
const shownMessages = 100

// Handler returns the handler of the carrier's page and its data: GET /,
// /messages.json, /submits.json (both take limit=n, the last n), /stats.json,
// /violations.json, /sessions.json, /faults.json, /fates.json; POST /reset, /faults (a
// JSON object of the faults to change), /drop and /unbind. It has no authentication:
// serve it on a loopback address only.
func (c *Carrier) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /messages.json", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, lastN(c.Messages(), r))
	})
	mux.HandleFunc("GET /submits.json", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, lastN(c.Submits(), r))
	})
	mux.HandleFunc("GET /stats.json", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, c.Stats()) })
	mux.HandleFunc("GET /violations.json", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, lastN(c.Violations(), r))
	})
	mux.HandleFunc("GET /sessions.json", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, lastN(c.Sessions(), r))
	})
	mux.HandleFunc("GET /faults.json", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, c.CurrentFaults()) })
	mux.HandleFunc("POST /faults", func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err == nil {
			// Parsed into a copy first: an invalid body changes nothing.
			trial := c.CurrentFaults()
			if err = json.Unmarshal(data, &trial); err == nil {
				c.Faults(func(f *Faults) { err = json.Unmarshal(data, f) })
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, c.CurrentFaults())
	})
	mux.HandleFunc("POST /reset", noContent(c.Reset))
	mux.HandleFunc("POST /drop", noContent(c.DropAll))
	mux.HandleFunc("POST /unbind", noContent(c.Unbind))
	addPage(mux, []*Carrier{c})
	return http.NewCrossOriginProtection().Handler(mux)
}

// FleetHandler returns the handler of one page for several carriers. Each
// Carrier.Handler is under /<name>/. /messages.json and /stats.json are objects by
// name, and POST /reset resets all.
func FleetHandler(carriers ...*Carrier) http.Handler {
	mux := http.NewServeMux()
	for _, c := range carriers {
		mux.Handle("/"+c.Name()+"/", http.StripPrefix("/"+c.Name(), c.Handler()))
	}
	mux.HandleFunc("GET /messages.json", func(w http.ResponseWriter, r *http.Request) {
		all := make(map[string][]Message, len(carriers))
		for _, c := range carriers {
			all[c.Name()] = lastN(c.Messages(), r)
		}
		writeJSON(w, all)
	})
	mux.HandleFunc("GET /stats.json", func(w http.ResponseWriter, _ *http.Request) {
		all := make(map[string]Stats, len(carriers))
		for _, c := range carriers {
			all[c.Name()] = c.Stats()
		}
		writeJSON(w, all)
	})
	mux.HandleFunc("POST /reset", noContent(func() {
		for _, c := range carriers {
			c.Reset()
		}
	}))
	addPage(mux, carriers)
	return http.NewCrossOriginProtection().Handler(mux)
}

func addPage(mux *http.ServeMux, carriers []*Carrier) {
	mux.HandleFunc("GET /fates.json", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, Fates()) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		type row struct {
			Carrier string
			Message
		}
		var view struct {
			Carriers []Stats
			Messages []row
			Wrong    []Violation
			Fates    []Fate
		}
		for _, c := range carriers {
			view.Carriers = append(view.Carriers, c.Stats())
			for _, m := range c.lastMessages(shownMessages) {
				view.Messages = append(view.Messages, row{c.Name(), m})
			}
			view.Wrong = append(view.Wrong, c.Violations()...)
		}
		slices.SortStableFunc(view.Messages, func(a, b row) int { return b.Last.Compare(a.Last) })
		view.Messages = view.Messages[:min(len(view.Messages), shownMessages)]
		slices.SortStableFunc(view.Wrong, func(a, b Violation) int { return b.At.Compare(a.At) })
		view.Wrong = view.Wrong[:min(len(view.Wrong), 20)]
		view.Fates = Fates()
		var out bytes.Buffer
		if err := page.Execute(&out, view); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'")
		_, _ = w.Write(out.Bytes())
	})
}

// noContent handles a POST without a body and responds with 204.
func noContent(do func()) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		do()
		w.WriteHeader(http.StatusNoContent)
	}
}

// lastN returns the last limit=n entries of a list, never nil.
func lastN[T any](list []T, r *http.Request) []T {
	if n, err := strconv.Atoi(r.FormValue("limit")); err == nil && n >= 0 && n < len(list) {
		list = list[len(list)-n:]
	}
	return append([]T{}, list...)
}

func writeJSON(w http.ResponseWriter, value any) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(data, '\n'))
}

func strictJSON(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
