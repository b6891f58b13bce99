// Package letters mails what must not be lost ([letter.Letter]): decisions about a company and its sender IDs, a low
// balance, a failing endpoint, changes of an account's protection. A letter is sent twice only if its process dies
// between the mail server's response and the deletion.
package letters

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts/companies"
	"intumwa/accounts/letter"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/internal/mail"
	"intumwa/internal/postgres"
	"intumwa/texts"
	"intumwa/webhooks"
)

const (
	lettersEvery     = 15 * time.Second // and on notice of a decision
	lettersAtOnce    = 20
	letterLease      = 15 * time.Minute // longer than sending lettersAtOnce may take; then another process tries
	letterRetryPause = time.Minute      // after the first failure, doubling
	letterLongest    = time.Hour
	letterMaxAge     = 3 * 24 * time.Hour // an older letter is dropped

	failingAtOnce  = 50 // letters of one round
	failingTimeout = 20 * time.Second
)

// Letters sends letters, in any number of processes.
type Letters struct {
	pool      *pgxpool.Pool
	people    *people.Store
	companies *companies.Store
	senders   *senders.Store
	mailer    *mail.Mailer
	publicURL string // of the dashboard: a request's Host is untrusted
	operator  string // mail address of the operator, for new orders; empty: none are mailed
	words     *texts.Texts
	log       *slog.Logger
	wake      chan struct{}
}

// New reads the texts. publicURL is the address of the dashboard, for the links in mails; operator is where new orders
// are told. Without a mail server the mailer drops letters, which is logged.
func New(pool *pgxpool.Pool, people *people.Store, companies *companies.Store, senders *senders.Store,
	mailer *mail.Mailer, publicURL, operator string, log *slog.Logger) (*Letters, error) {
	texts, err := texts.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the texts: %w", err)
	}
	return &Letters{pool, people, companies, senders, mailer, strings.TrimRight(publicURL, "/"), operator, texts, log,
		make(chan struct{}, 1)}, nil
}

// Run sends letters, and writes those to the owners of failing endpoints, until ctx ends.
func (d *Letters) Run(ctx context.Context) error {
	tick := time.NewTicker(lettersEvery)
	defer tick.Stop()
	for {
		for n := failingAtOnce; n == failingAtOnce; {
			var err error
			if n, err = d.writeFailing(ctx); err != nil && ctx.Err() == nil {
				d.log.Error("owners of failing webhook endpoints could not be notified; trying again", "event",
					"endpoint_owners_not_notified", "error", err)
			}
		}
		for n := lettersAtOnce; n == lettersAtOnce; {
			var err error
			if n, err = d.sendLetters(ctx); err != nil && ctx.Err() == nil {
				d.log.Error("mails to company owners could not be sent; trying again", "event", "owner_mails_not_sent", "error",
					err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-d.wake:
		}
	}
}

// Wake makes Run look for letters. It handles notices about companies, and never blocks.
func (d *Letters) Wake(string) {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// sendLetters sends some of the due letters and returns their number.
func (d *Letters) sendLetters(ctx context.Context) (int, error) {
	due, err := letter.Take(ctx, d.pool, letterLease, lettersAtOnce)
	if err != nil {
		return 0, err
	}
	for _, l := range due {
		if err := d.sendLetter(ctx, l); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// sendLetter sends a letter, or postpones it. A letter that was rewritten meanwhile stays.
func (d *Letters) sendLetter(ctx context.Context, l letter.Letter) error {
	m, err := d.mailOf(ctx, l)
	if err != nil {
		return fmt.Errorf("writing a mail of kind %s: %w", l.Kind, err)
	}
	done := m == nil || d.mailer.Deliver(ctx, *m, l.Tries, postgres.Now().Sub(l.Written) > letterMaxAge)
	if !done && ctx.Err() != nil {
		l.Tries = 1 // this process is shutting down: another one tries soon
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if done {
		return letter.Drop(ctx, d.pool, l)
	}
	return letter.Postpone(ctx, d.pool, l, min(letterRetryPause<<min(l.Tries-1, 10), letterLongest))
}

// failing are the values of a letter about a failing endpoint.
type failing struct {
	Since time.Time `json:"since"`
}

// writeFailing writes letters to some owners, each exactly once: in the transaction that marks the owners as
// notified.
func (d *Letters) writeFailing(ctx context.Context) (written int, err error) {
	ctx, cancel := context.WithTimeout(ctx, failingTimeout)
	defer cancel()
	var found []webhooks.Failing
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) (err error) {
		if found, err = webhooks.TakeFailing(ctx, tx, failingAtOnce); err != nil {
			return err
		}
		for _, f := range found {
			if err := letter.Write(ctx, tx, letter.Webhook, f.CompanyID, failing{Since: f.Since}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("writing letters about failing endpoints: %w", err)
	}
	return len(found), nil
}
