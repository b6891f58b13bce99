package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/acts"
	"intumwa/dispatcher"
)

// reportWithin is how long resume waits for the dispatcher that holds the link:
// with one heartbeat (1 s) it obeys, with the next it reports.
const reportWithin = 5 * time.Second

type adminLinksCmd struct{}

// Run lists the links as their dispatchers last announced them.
func (adminLinksCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		links, err := dispatcher.Links(ctx, o.pool)
		if err != nil {
			return nil, err
		}
		if links == nil {
			links = []dispatcher.LinkState{} // [] in JSON, not null
		}
		return links, nil
	})
}

type adminLinkCmd struct {
	Pause  adminLinkPauseCmd  `cmd:"" help:"Stop submitting over a link; what is in flight is finished."`
	Resume adminLinkResumeCmd `cmd:"" help:"Submit over a link again."`
	Trace  adminLinkTraceCmd  `cmd:"" help:"Show the PDUs of a link for a while; numbers are masked, texts are lengths."`
}

type adminLinkPauseCmd struct {
	Name string `required:"" help:"The link."`
}

type adminLinkResumeCmd struct {
	Name string `required:"" help:"The link."`
}

type adminLink struct {
	Link  string `json:"link"`
	State string `json:"state"`
}

// Run pauses a link in whichever process holds it.
func (c *adminLinkPauseCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.setPaused(ctx, p, c.Name, true)
}

// Run resumes a link and says what it is then, as `admin links` will.
func (c *adminLinkResumeCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.setPaused(ctx, p, c.Name, false)
}

func (a *adminCmd) setPaused(ctx context.Context, p *program, link string, paused bool) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		var state string
		err := o.changeBusy(ctx, func(tx pgx.Tx) (acts.Entry, error) {
			before, err := dispatcher.IsPaused(ctx, tx, link)
			if err != nil {
				return acts.Entry{}, err
			}
			act := "link.resume"
			if paused {
				act = "link.pause"
			}
			state, err = dispatcher.SetPaused(ctx, tx, link, paused)
			return acts.Entry{Act: act, Subject: "link " + link, Before: map[string]any{"paused": before}, After: map[string]any{"paused": paused}}, err
		})
		if err == nil && !paused {
			state, err = resumed(ctx, o.pool, link, reportWithin)
		}
		if err != nil {
			return nil, err
		}
		if !paused && state == statePaused {
			_, _ = fmt.Fprintf(p.stderr, "intumwa: %s is to be resumed, and its dispatcher has not reported yet that it is\n", link)
		}
		return adminLink{Link: link, State: state}, nil
	})
}

const statePaused = "paused"

// resumed returns a link's state once it is reported as something else than
// paused, or as it is when patience is over.
func resumed(ctx context.Context, pool *pgxpool.Pool, link string, patience time.Duration) (string, error) {
	over := time.After(patience)
	for {
		links, err := dispatcher.Links(ctx, pool)
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(links, func(l dispatcher.LinkState) bool { return l.Link == link })
		if i < 0 {
			return "", fmt.Errorf("%s: %w", link, dispatcher.ErrNoLink) // removed from the configuration a moment ago
		}
		if links[i].State != statePaused {
			return links[i].State, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-over:
			return links[i].State, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}
