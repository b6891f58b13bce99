// Package mail sends mails over SMTP in the background: callers never wait for a mail server, and response times do not
// show whether a mail was sent.
//
// [Mailer.Send] queues a mail in memory, up to a limit: use it for mails that the recipient can request again, such as
// a sign-up link. For mails that must survive the process, the caller stores the mail and calls [Mailer.Deliver] until
// it is done. Addresses and contents are never logged.
package mail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	stdmail "net/mail"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	gomail "github.com/wneessen/go-mail"
)

const (
	maxWaiting  = 1000 // mails in memory
	sendsAtOnce = 2    // to the server
	sendTimeout = 20 * time.Second
)

// delays are the pauses after a failed attempt; after the last one the mail has one more attempt.
var delays = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}

// Values of Options.TLS.
const (
	STARTTLS = "starttls" // plain at first, then TLS; without TLS no mail is sent
	TLS      = "tls"      // TLS from the first byte
	Plain    = "none"     // no TLS: only for a server on the same machine
)

// Options of [New].
type Options struct {
	Server   string // host:port; empty: mails are not sent, which is logged
	From     string // name and address: Intumwa <no-reply@example.com>
	Username string // empty: no authentication
	Password string
	TLS      string // STARTTLS, TLS or Plain
	Log      *slog.Logger
	Metrics  prometheus.Registerer // nil: not registered
}

// Message is one mail of plain text.
type Message struct {
	Kind    string // for log and metrics, such as sign-up
	To      string // one address
	Subject string
	Text    string
}

// Mailer is safe for concurrent use.
type Mailer struct {
	opts    Options
	log     *slog.Logger
	mails   *prometheus.CounterVec
	places  chan struct{} // one for each mail that is queued or tried again
	waiting chan Message
}

// New checks the options. It starts nothing.
func New(opts Options) (*Mailer, error) {
	if opts.Server != "" {
		if _, _, err := net.SplitHostPort(opts.Server); err != nil {
			return nil, fmt.Errorf("the mail server: %w", err)
		}
		if _, err := stdmail.ParseAddress(opts.From); err != nil {
			return nil, fmt.Errorf("the sender of mails: %w", err)
		}
	}
	m := &Mailer{opts: opts, log: opts.Log, places: make(chan struct{}, maxWaiting),
		waiting: make(chan Message, maxWaiting), mails: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intumwa_mails_total",
			Help: "Mails by result. dropped: too many waited; unconfigured: no mail server is set.",
		}, []string{"result"})}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	for _, result := range []string{"sent", "failed", "dropped", "unconfigured"} {
		m.mails.WithLabelValues(result)
	}
	if opts.Metrics != nil {
		opts.Metrics.MustRegister(m.mails)
	}
	return m, nil
}

// Send queues a mail in memory and returns at once.
func (m *Mailer) Send(message Message) {
	if m.unconfigured(message) {
		return
	}
	select {
	case m.places <- struct{}{}:
		m.waiting <- message // has as many places
	default:
		m.mails.WithLabelValues("dropped").Inc()
		m.log.Error("mail dropped: too many wait", "event", "mail_dropped", "kind", message.Kind)
	}
}

// Configured reports whether there is a mail server.
func (m *Mailer) Configured() bool { return m.opts.Server != "" }

// unconfigured reports whether no mail server is configured, and logs the mail that is not sent.
func (m *Mailer) unconfigured(message Message) bool {
	if m.Configured() {
		return false
	}
	m.mails.WithLabelValues("unconfigured").Inc()
	m.log.Warn("mail not sent: no mail server is configured (mail.url)", "event", "mail_not_configured", "kind",
		message.Kind)
	return true
}

// Run sends mails until ctx ends. Mails that wait then are lost; the log has their number.
func (m *Mailer) Run(ctx context.Context) error {
	var mails sync.WaitGroup
	turns := make(chan struct{}, sendsAtOnce)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case message := <-m.waiting:
			mails.Go(func() { m.keepTrying(ctx, message, turns) })
		}
	}
	mails.Wait()
	if lost := len(m.places); lost > 0 {
		m.log.Warn("waiting mails lost at shutdown", "event", "mail_lost", "mails", lost)
	}
	return nil
}

// keepTrying sends a mail, and tries again after each of the delays.
func (m *Mailer) keepTrying(ctx context.Context, message Message, turns chan struct{}) {
	for attempt := 1; ; attempt++ {
		select {
		case <-ctx.Done():
			return
		case turns <- struct{}{}:
		}
		done := m.Deliver(ctx, message, attempt, attempt > len(delays))
		<-turns
		if done {
			<-m.places
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delays[attempt-1]):
		}
	}
}

// Deliver sends a mail at once, for callers that store it until it is sent. done means that the mail needs no further
// attempt: the server has accepted it or refused it for good, no server is configured, or last was set. attempt counts
// from 1.
func (m *Mailer) Deliver(ctx context.Context, message Message, attempt int, last bool) (done bool) {
	if m.unconfigured(message) {
		return true
	}
	err := m.deliver(ctx, message)
	switch {
	case err == nil:
		m.mails.WithLabelValues("sent").Inc()
		return true
	case last || permanent(err):
		m.mails.WithLabelValues("failed").Inc()
		m.log.Error("mail could not be sent; given up", "event", "mail_given_up", "kind", message.Kind, "attempts", attempt,
			"reason", reason(err))
		return true
	}
	m.log.Warn("mail could not be sent; trying again later", "event", "mail_delayed", "kind", message.Kind, "attempts",
		attempt, "reason", reason(err))
	return false
}

func (m *Mailer) deliver(ctx context.Context, message Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	msg := gomail.NewMsg()
	if err := errors.Join(msg.From(m.opts.From), msg.To(message.To)); err != nil {
		return &unsendable{err}
	}
	msg.Subject(message.Subject)
	msg.SetDate()
	msg.SetMessageID()
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic replies, please
	msg.SetBodyString(gomail.TypeTextPlain, message.Text)
	client, err := m.client()
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, msg)
}

func (m *Mailer) client() (*gomail.Client, error) {
	host, portText, _ := net.SplitHostPort(m.opts.Server) // checked by New
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("the mail server's port: %w", err)
	}
	options := []gomail.Option{gomail.WithPort(port), gomail.WithTimeout(sendTimeout)}
	switch m.opts.TLS {
	case TLS:
		options = append(options, gomail.WithSSL())
	case Plain:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if m.opts.Username != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(m.opts.Username),
			gomail.WithPassword(m.opts.Password))
	}
	return gomail.NewClient(host, options...)
}

// unsendable is the error of a mail that no server would accept.
type unsendable struct{ error }

// Unwrap returns the reason.
func (u *unsendable) Unwrap() error { return u.error }

func permanent(err error) bool {
	var bad *unsendable
	var refused *gomail.SendError
	return errors.As(err, &bad) || errors.As(err, &refused) && !refused.IsTemp() && refused.ErrorCode() >= 500
}

// reason returns the error without addresses, which a server's response may repeat.
func reason(err error) string {
	var refused *gomail.SendError
	if errors.As(err, &refused) {
		return fmt.Sprintf("%s (SMTP code %d)", refused.Reason, refused.ErrorCode())
	}
	var bad *unsendable
	if errors.As(err, &bad) {
		return "the address cannot be written"
	}
	return err.Error()
}
