package main

import (
	"context"

	"intumwa/dispatcher"
)

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

// Run resumes a link.
func (c *adminLinkResumeCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.setPaused(ctx, p, c.Name, false)
}

func (a *adminCmd) setPaused(ctx context.Context, p *program, link string, paused bool) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		state, err := dispatcher.SetPaused(ctx, o.pool, link, paused)
		if err != nil {
			return nil, err
		}
		return adminLink{Link: link, State: state}, nil
	})
}
