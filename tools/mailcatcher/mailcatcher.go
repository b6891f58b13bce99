// Package mailcatcher is a mail server for development and tests that keeps mails in memory and shows them.
package mailcatcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
)

const (
	maxMails = 200
	maxMail  = 1 << 20 // bytes
)

// Mail is a received mail.
type Mail struct {
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
	At      time.Time `json:"at"`
}

// Catcher accepts every mail and keeps the newest 200.
type Catcher struct {
	mu    sync.Mutex
	mails []Mail
	came  chan struct{}
}

// New is an empty catcher.
func New() *Catcher { return &Catcher{came: make(chan struct{})} }

// Mails returns the received mails, newest first.
func (c *Catcher) Mails() []Mail {
	c.mu.Lock()
	defer c.mu.Unlock()
	mails := slices.Clone(c.mails)
	slices.Reverse(mails)
	return mails
}

// Wait returns the n-th mail to an address, from 0, once it has arrived.
func (c *Catcher) Wait(ctx context.Context, to string, n int) (Mail, error) {
	for {
		c.mu.Lock()
		came, found := c.came, []Mail(nil)
		for _, m := range c.mails {
			if m.To == to {
				found = append(found, m)
			}
		}
		c.mu.Unlock()
		if len(found) > n {
			return found[n], nil
		}
		select {
		case <-came:
		case <-ctx.Done():
			return Mail{}, fmt.Errorf("waiting for a mail: %w", ctx.Err())
		}
	}
}

func (c *Catcher) keep(m Mail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mails = append(c.mails, m); len(c.mails) > maxMails {
		c.mails = slices.Delete(c.mails, 0, len(c.mails)-maxMails)
	}
	close(c.came)
	c.came = make(chan struct{})
}

// ServeSMTP accepts mails until ctx ends.
func (c *Catcher) ServeSMTP(ctx context.Context, l net.Listener) error {
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{catcher: c}, nil }))
	server.Domain = "localhost"
	server.MaxMessageBytes, server.MaxRecipients = maxMail, 10
	server.ReadTimeout, server.WriteTimeout = 30*time.Second, 30*time.Second
	stop := context.AfterFunc(ctx, func() { _, _ = server.Close(), l.Close() }) // server may not know l yet
	defer stop()
	if err := server.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("serving SMTP: %w", err)
	}
	return nil
}

// ServePage shows the mails until ctx ends: HTML at /, JSON at /mails.json.
func (c *Catcher) ServePage(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: c, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the page: %w", err)
	}
	return nil
}

type session struct {
	catcher *Catcher
	to      []string
}

// Reset drops the unfinished mail.
func (s *session) Reset() { s.to = nil }

// Logout ends the session.
func (s *session) Logout() error { return nil }

// Mail accepts any sender.
func (s *session) Mail(string, *smtp.MailOptions) error { return nil }

// Rcpt accepts any recipient.
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return nil
}

// Data stores the mail once per recipient.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	subject, text := parse(raw)
	for _, to := range s.to {
		s.catcher.keep(Mail{To: to, Subject: subject, Text: text, At: time.Now()})
	}
	return nil
}

// parse reads a mail with a single plain text; it shows any other raw.
func parse(raw []byte) (subject, text string) {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return "", string(raw)
	}
	subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		subject = m.Header.Get("Subject")
	}
	body := m.Body
	if strings.EqualFold(m.Header.Get("Content-Transfer-Encoding"), "quoted-printable") {
		body = quotedprintable.NewReader(body)
	}
	decoded, err := io.ReadAll(body)
	if err != nil {
		return subject, string(raw)
	}
	return subject, strings.ReplaceAll(string(decoded), "\r\n", "\n")
}

// piece is a part of a text: a link, or not.
type piece struct{ Text, Link string }

var link = regexp.MustCompile(`https?://\S+`)

func pieces(text string) (all []piece) {
	for {
		at := link.FindStringIndex(text)
		if at == nil {
			return append(all, piece{Text: text})
		}
		all = append(all, piece{Text: text[:at[0]]}, piece{Link: text[at[0]:at[1]]})
		text = text[at[1]:]
	}
}

var page = template.Must(template.New("page").Funcs(template.FuncMap{"pieces": pieces}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Mails</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}
article{border:1px solid #ddd;border-radius:.6rem;padding:1rem 1.25rem;margin:1rem 0}h2{font-size:1rem;margin:0}
p{color:#666;margin:.1rem 0}pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;margin:.8rem 0 0}
@media(prefers-color-scheme:dark){body{background:#111;color:#eee}article{border-color:#333}
p{color:#aaa}a{color:#8ab4ff}}</style></head>
<body><h1>Mails</h1>{{range .}}<article><h2>{{.Subject}}</h2><p>to {{.To}}, {{.At.Format "15:04:05"}}</p>
<pre>{{range pieces .Text}}{{if .Link}}<a href="{{.Link}}">{{.Link}}</a>{{else}}{{.Text}}{{end}}{{end}}</pre></article>
{{else}}<p>None so far.</p>{{end}}</body></html>
`))

// ServeHTTP shows the mails.
func (c *Catcher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "+
		"form-action 'none'; frame-ancestors 'none'")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	switch r.URL.Path {
	case "/":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.Execute(w, c.Mails()) // the browser may have disconnected
	case "/mails.json":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(append([]Mail{}, c.Mails()...))
	default:
		http.NotFound(w, r)
	}
}
