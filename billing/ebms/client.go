package ebms

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	callTimeout = 30 * time.Second // of one request
	maxReply    = 1 << 20
	freshFor    = 15 * time.Second // how long a token is used; it lives for a minute at most
)

// Access is how the eBMS is reached. The name of the user is the system's id, unless the OBR gave another.
type Access struct {
	URL      string // https://host:port, without /ebms_api
	Username string
	Password string
	CA       *x509.CertPool // authorities to trust besides those of the machine; nil: only those
}

// Client speaks with the eBMS. Certificates are always verified, and no redirect is followed. It keeps no connection
// between batches.
type Client struct {
	to   Access
	http *http.Client
}

// NewClient returns a client that has not called yet.
func NewClient(to Access) *Client {
	to.URL = strings.TrimRight(to.URL, "/")
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: to.CA},
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConns: 1, IdleConnTimeout: 20 * time.Second,
		MaxResponseHeaderBytes: 64 << 10}
	return &Client{to, &http.Client{Transport: transport, Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Session is a batch of calls after one login. It is for one goroutine.
type Session struct {
	client *Client
	token  string
	since  time.Time // of the token
}

// Login begins a batch. The errors are [Away].
func (c *Client) Login(ctx context.Context) (*Session, error) {
	s := &Session{client: c}
	return s, s.login(ctx)
}

// End closes the connections of the client that nobody uses.
func (c *Client) End() { c.http.CloseIdleConnections() }

func (s *Session) login(ctx context.Context) error {
	s.token = ""
	r, err := s.post(ctx, "login", map[string]string{"username": s.client.to.Username, "password": s.client.to.Password})
	if err != nil {
		return err
	}
	var result struct {
		Token string `json:"token"`
	}
	if !r.success || r.lazily(&result) != nil || result.Token == "" {
		return &Away{fmt.Errorf("the eBMS does not accept the login: %w", r.refusal())}
	}
	s.token, s.since = result.Token, time.Now()
	return nil
}

// call is post with a token. An old token is replaced before, as it is uncertain how a reply says that it has expired;
// one that is refused is replaced once. After the login, a request that fails is a [Fault], so that it cannot hold up
// the others for ever; but [Away] if there is no connection, or no such method.
func (s *Session) call(ctx context.Context, method string, request any) (r reply, err error) {
	if time.Since(s.since) > freshFor {
		if err := s.login(ctx); err != nil {
			return r, err
		}
	}
	for range 2 {
		r, err = s.post(ctx, method, request)
		switch r.status {
		case http.StatusUnauthorized, http.StatusForbidden:
		case http.StatusNotFound, http.StatusMethodNotAllowed:
			return r, err
		default:
			dial, isNet := errors.AsType[*net.OpError](err)
			if err != nil && (!isNet || dial.Op != "dial") {
				err = &Fault{err.Error()}
			}
			return r, err
		}
		if err := s.login(ctx); err != nil {
			return r, err
		}
	}
	if err == nil {
		err = r.refusal()
	}
	return r, &Fault{"the eBMS refuses a token that it has just given: " + err.Error()}
}

// post sends a request and reads the JSON of the reply. Every error is [Away]; the reply has its status, if one came.
func (s *Session) post(ctx context.Context, method string, request any) (reply, error) {
	r, err := s.exchange(ctx, method, request)
	if err != nil {
		return r, &Away{fmt.Errorf("%s: %w", method, err)}
	}
	return r, nil
}

func (s *Session) exchange(ctx context.Context, method string, request any) (reply, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(request); err != nil {
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.client.to.URL+"/ebms_api/"+method+"/", &text)
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "intumwa")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := s.client.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err == nil && len(raw) > maxReply {
		err = fmt.Errorf("a reply of more than %d bytes", maxReply)
	}
	if err != nil {
		return reply{}, fmt.Errorf("reading the reply: %w", err)
	}
	return readReply(resp.StatusCode, raw)
}

// Receipt is the proof that the eBMS has an invoice.
type Receipt struct {
	Raw        []byte // the reply
	Signature  string // of the OBR, in base64; empty from [Session.Find]
	Registered string // the OBR's number
}

// Add reports an invoice. The errors are [ErrDuplicate], [Refused], [Fault] and [Away].
func (s *Session) Add(ctx context.Context, v *Invoice) (Receipt, error) {
	r, err := s.call(ctx, "addInvoice_confirm", v.body())
	if err != nil {
		return Receipt{}, err
	}
	if !r.success {
		return Receipt{}, r.sorted()
	}
	var result struct {
		Number     anyText `json:"invoice_number"`
		Registered anyText `json:"invoice_registered_number"`
	}
	_ = r.lazily(&result)
	if result.Number != "" && string(result.Number) != v.Number {
		return Receipt{}, &Fault{fmt.Sprintf("the eBMS confirms %s instead of %s", excerpt(string(result.Number)), v.Number)}
	}
	return Receipt{r.raw, r.signature, string(result.Registered)}, nil
}

// Taxpayer is [Session.Taxpayer] after a login.
func (c *Client) Taxpayer(ctx context.Context, nif string) (string, error) {
	s, err := c.Login(ctx)
	if err != nil {
		return "", err
	}
	return s.Taxpayer(ctx, nif)
}

// ErrUnknown means that the eBMS has no invoice with an identifier, or knows no taxpayer with a NIF.
var ErrUnknown = errors.New("unknown to the OBR")

// Find returns the proof that the eBMS has this invoice. The errors are [ErrUnknown], [Fault] and [Away].
func (s *Session) Find(ctx context.Context, v *Invoice) (Receipt, error) {
	r, err := s.call(ctx, "getInvoice", map[string]string{"invoice_identifier": v.Identifier})
	if err != nil {
		return Receipt{}, err
	}
	if !r.success {
		return Receipt{}, r.unknown("identifiant")
	}
	var result struct {
		Invoices []struct {
			Number     anyText `json:"invoice_number"`
			Registered anyText `json:"invoice_registered_number"`
		} `json:"invoices"`
	}
	if err := r.lazily(&result); err != nil || len(result.Invoices) == 0 {
		return Receipt{}, ErrUnknown
	}
	if n := result.Invoices[0].Number; n != "" && string(n) != v.Number {
		return Receipt{}, &Fault{fmt.Sprintf("the eBMS has %s under the identifier of %s", excerpt(string(n)), v.Number)}
	}
	return Receipt{r.raw, r.signature, string(result.Invoices[0].Registered)}, nil
}

// Taxpayer returns the name that the OBR has for a NIF. The errors are [ErrUnknown], [Fault] and [Away].
func (s *Session) Taxpayer(ctx context.Context, nif string) (string, error) {
	r, err := s.call(ctx, "checkTIN", map[string]string{"tp_TIN": nif})
	if err != nil {
		return "", err
	}
	if !r.success {
		return "", r.unknown("nif")
	}
	var result struct {
		Taxpayer []struct {
			Name string `json:"tp_name"`
		} `json:"taxpayer"`
	}
	if err := r.lazily(&result); err != nil || len(result.Taxpayer) == 0 {
		return "", ErrUnknown
	}
	return excerpt(result.Taxpayer[0].Name), nil
}
