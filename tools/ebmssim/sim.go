// Package ebmssim is a simulated eBMS of the tax office (OBR) for development and tests. [Faults] has a switch for each
// thing that its specification leaves open.
package ebmssim

import (
	"bufio"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options configure a simulator.
type Options struct {
	Username, Password string
	Store              string // file that keeps what was received; empty: memory
	Faults             Faults
	Log                *slog.Logger // nil: none
}

// Invoice is an invoice that the simulator has received.
type Invoice struct {
	Number     string         `json:"number"`
	Kind       string         `json:"kind"`
	Identifier string         `json:"identifier"`
	Registered int64          `json:"registered"`
	At         time.Time      `json:"at"`
	Cancelled  string         `json:"cancelled,omitempty"` // the reason
	Body       map[string]any `json:"body"`
}

// Calls counts requests by method, and those of interest.
type Calls map[string]int

// Sim is a simulated eBMS.
type Sim struct {
	opts Options
	key  func() (*rsa.PrivateKey, error)

	mu       sync.Mutex
	faults   Faults
	tokens   map[string]time.Time // when each was given
	invoices []Invoice
	calls    Calls
	recent   []time.Time // requests of the last minute
	now      int         // requests that are being handled
	store    *os.File
}

// New reads the store, if there is one. Close it at the end.
func New(o Options) (*Sim, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Sim{opts: o, faults: o.Faults, tokens: map[string]time.Time{}, calls: Calls{},
		key: sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })}
	if o.Store == "" {
		return s, nil
	}
	file, err := os.OpenFile(o.Store, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	whole := int64(0)
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line without its end was being written when a simulator was killed
			break
		}
		var v Invoice
		if err == nil {
			err = json.Unmarshal(line, &v)
		}
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("reading the store: %w", err)
		}
		whole += int64(len(line))
		if v.Cancelled != "" {
			s.invoices[v.Registered-1] = v
			continue
		}
		s.invoices = append(s.invoices, v)
	}
	if err := errors.Join(file.Truncate(whole), second(file.Seek(whole, io.SeekStart))); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	s.store = file
	return s, nil
}

func second(_ int64, err error) error { return err }

// Close closes the store.
func (s *Sim) Close() error {
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}

// Invoices returns what was received, oldest first.
func (s *Sim) Invoices() []Invoice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.invoices)
}

// Calls returns the counts so far.
func (s *Sim) Calls() Calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := Calls{}
	for name, n := range s.calls {
		all[name] = n
	}
	return all
}

// Faults changes the faults.
func (s *Sim) Faults(change func(*Faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.faults)
}

// Serve serves until ctx ends.
func (s *Sim) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the eBMS: %w", err)
	}
	return nil
}

const maxBody = 1 << 20

// ServeHTTP serves the eBMS under /ebms_api/. For people and tests: a page at /, /invoices.json, /calls.json,
// /faults.json, and POST /faults with a JSON object of the faults to change. These have no authentication.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method, isAPI := strings.CutPrefix(r.URL.Path, "/ebms_api/")
	switch {
	case isAPI:
		s.api(w, r, method)
	case r.Method == http.MethodPost && r.URL.Path == "/faults":
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		s.mu.Lock()
		trial := s.faults
		if err == nil {
			err = json.Unmarshal(text, &trial)
		}
		if err == nil {
			s.faults = trial
		}
		s.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, http.StatusOK, trial)
	case r.URL.Path == "/faults.json":
		s.mu.Lock()
		defer s.mu.Unlock()
		writeJSON(w, http.StatusOK, s.faults)
	case r.URL.Path == "/invoices.json":
		writeJSON(w, http.StatusOK, append([]Invoice{}, s.Invoices()...))
	case r.URL.Path == "/calls.json":
		writeJSON(w, http.StatusOK, s.Calls())
	case r.URL.Path == "/":
		all := s.Invoices()
		slices.Reverse(all)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_ = page.Execute(w, all) // the browser may have disconnected
	default:
		http.NotFound(w, r)
	}
}

// answer is a reply of the eBMS.
type answer struct {
	status int
	msg    string
	result any
	signed bool
}

func failed(status int, format string, args ...any) answer {
	return answer{status: status, msg: fmt.Sprintf(format, args...)}
}

func (s *Sim) api(w http.ResponseWriter, r *http.Request, method string) {
	s.mu.Lock()
	f := s.faults
	s.now++
	s.calls["at once"] = max(s.calls["at once"], s.now)
	s.calls[method]++
	s.recent = slices.DeleteFunc(s.recent, func(at time.Time) bool { return time.Since(at) > time.Minute })
	s.recent = append(s.recent, time.Now())
	busy := f.Rate > 0 && len(s.recent) > f.Rate
	s.mu.Unlock()
	ended := sync.OnceFunc(func() { s.mu.Lock(); s.now--; s.mu.Unlock() })
	defer ended()
	sent, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody)) // first: then the server notices a lost connection
	if f.Slow > 0 {
		select {
		case <-time.After(f.Slow):
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case f.HTML:
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><head><style>p { color: red }</style></head><body><h1>Site en maintenance</h1>"+
			"<script>var a = {success: true}</script></body></html>")
		return
	case f.BadGateway:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html><body><h1>502 Bad Gateway</h1></body></html>")
		return
	case f.Cut:
		ended() // before the caller knows
		cut(w)
		return
	case busy:
		s.write(w, f, answer{status: http.StatusTooManyRequests, msg: "Trop de requêtes."})
		return
	case r.Method != http.MethodPost:
		s.write(w, f, failed(http.StatusMethodNotAllowed, "Méthode non autorisée."))
		return
	}
	var body map[string]any
	if err == nil {
		err = json.Unmarshal(sent, &body)
	}
	if err != nil {
		s.write(w, f, failed(http.StatusBadRequest, "JSON invalide."))
		return
	}
	if method == "login/" {
		s.write(w, f, s.login(f, body))
		return
	}
	if refused := s.token(f, r); refused != nil {
		s.write(w, f, *refused)
		return
	}
	if f.Fail {
		s.write(w, f, failed(http.StatusInternalServerError, "Quelque chose a mal tourné. Veuillez réessayer plus tard."))
		return
	}
	switch method {
	case "addInvoice_confirm/":
		if f.NoConfirm {
			http.NotFound(w, r)
			return
		}
		a, lost := s.add(f, body)
		if lost {
			ended()
			cut(w)
			return
		}
		s.write(w, f, a)
	case "getInvoice/":
		s.write(w, f, s.get(text(body, "invoice_identifier")))
	case "cancelInvoice/":
		s.write(w, f, s.cancel(text(body, "invoice_identifier"), text(body, "cn_motif")))
	case "checkTIN/":
		tin := text(body, "tp_TIN")
		if tin == "" || slices.Contains(f.UnknownTINs, tin) {
			s.write(w, f, failed(http.StatusBadRequest, "NIF du contribuable inconnu."))
			return
		}
		s.write(w, f, answer{status: http.StatusOK, msg: "Opération réussie",
			result: map[string]any{"taxpayer": []any{map[string]string{"tp_name": "CONTRIBUABLE " + tin}}}})
	default:
		http.NotFound(w, r)
	}
}

// cut closes the connection without a response.
func cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}

func (s *Sim) login(f Faults, body map[string]any) answer {
	if f.RefuseLogin || text(body, "username") != s.opts.Username || text(body, "password") != s.opts.Password {
		return failed(http.StatusUnauthorized, "Nom d'utilisateur ou mot de passe incorrect.")
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random) // it never fails
	token := "eyJ." + hex.EncodeToString(random) + ".sig"
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, at := range s.tokens {
		if time.Since(at) > f.life() {
			delete(s.tokens, old)
		}
	}
	s.tokens[token] = time.Now()
	return answer{status: http.StatusOK, msg: "Opération réussie", result: map[string]string{"token": token}}
}

func (s *Sim) token(f Faults, r *http.Request) *answer {
	token, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !given {
		return &answer{status: http.StatusForbidden, msg: "La clé API est manquante."}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.tokens[token]; known && time.Since(at) <= f.life() {
		return nil
	}
	s.calls["expired"]++
	return &answer{status: f.expired(), msg: "La clé API a expiré."}
}

// add stores an invoice. lost means that the client must not learn of it.
func (s *Sim) add(f Faults, body map[string]any) (a answer, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Refuse != "" {
		return failed(http.StatusBadRequest, "%s", f.Refuse), false
	}
	number := text(body, "invoice_number")
	if i := slices.IndexFunc(s.invoices, func(v Invoice) bool { return v.Number == number }); i >= 0 {
		s.calls["duplicates"]++
		return failed(f.duplicate()), false
	}
	if why := s.wrong(f, body); why != "" {
		return failed(http.StatusBadRequest, "%s", why), false
	}
	v := Invoice{Number: number, Kind: text(body, "invoice_type"), Identifier: text(body, "invoice_identifier"),
		Registered: int64(len(s.invoices)) + 1, At: time.Now(), Body: body}
	if err := s.keep(v); err != nil {
		s.opts.Log.Error("the store cannot be written", "error", err)
		return failed(http.StatusInternalServerError, "Quelque chose a mal tourné. Veuillez réessayer plus tard."), false
	}
	s.invoices = append(s.invoices, v)
	s.opts.Log.Info("invoice received", "number", v.Number, "kind", v.Kind)
	if s.faults.CutAfterStore > 0 {
		s.faults.CutAfterStore--
		return answer{}, true
	}
	registered := any(strconv.FormatInt(v.Registered, 10))
	if f.NumbersAsNumbers {
		registered = v.Registered
	}
	return answer{http.StatusOK, "La facture a été ajoutée avec succès!", map[string]any{"invoice_number": number,
		"invoice_registered_number": registered, "invoice_registered_date": v.At.Format(layout)}, !f.NoSignature}, false
}

// keep writes an invoice to the store. The caller holds mu.
func (s *Sim) keep(v Invoice) error {
	if s.store == nil {
		return nil
	}
	line, err := json.Marshal(v)
	if err == nil {
		_, err = s.store.Write(append(line, '\n'))
	}
	if err == nil {
		err = s.store.Sync()
	}
	return err
}

func (s *Sim) find(identifier string) int {
	return slices.IndexFunc(s.invoices, func(v Invoice) bool { return identifier != "" && v.Identifier == identifier })
}

func (s *Sim) get(identifier string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(identifier)
	if i < 0 {
		return failed(http.StatusBadRequest, "Identifiant de la facture inconnu.")
	}
	body := map[string]any{}
	for key, value := range s.invoices[i].Body {
		body[key] = value
	}
	body["cancelled_invoice"] = "N"
	if s.invoices[i].Cancelled != "" {
		body["cancelled_invoice"] = "Y"
	}
	return answer{status: http.StatusOK, msg: "Opération réussie", result: map[string]any{"invoices": []any{body}}}
}

func (s *Sim) cancel(identifier, reason string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(identifier)
	switch {
	case reason == "":
		return failed(http.StatusBadRequest, missing, "cn_motif")
	case i < 0:
		return failed(http.StatusBadRequest, "Identifiant de la facture inconnu.")
	case s.invoices[i].Cancelled != "":
		return failed(http.StatusBadRequest, "La facture a déjà été annulée.")
	}
	v := s.invoices[i]
	v.Cancelled = reason
	if err := s.keep(v); err != nil {
		return failed(http.StatusInternalServerError, "Quelque chose a mal tourné. Veuillez réessayer plus tard.")
	}
	s.invoices[i] = v
	return answer{status: http.StatusOK, msg: "La facture a été annulée avec succès!"}
}

// write sends a reply, as the faults change it.
func (s *Sim) write(w http.ResponseWriter, f Faults, a answer) {
	body := map[string]any{"success": a.status == http.StatusOK, "msg": a.msg, "result": []any{}}
	if a.result != nil {
		body["result"] = a.result
		if f.ResultArray {
			body["result"] = []any{a.result}
		}
	}
	if a.signed {
		text, err := json.Marshal(a.result)
		key, keyErr := s.key()
		if err == nil && keyErr == nil {
			sum := sha256.Sum256(text)
			if signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:]); err == nil {
				body["electronic_signature"] = base64.StdEncoding.EncodeToString(signature)
			}
		}
	}
	if f.Junk {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, "<br />\n<b>Warning</b>: Undefined index {row} in /var/www/ebms.php on line 12<br />\n")
		_ = json.NewEncoder(w).Encode(body)
		return
	}
	writeJSON(w, a.status, body)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the client may have disconnected
}
