package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"

	"intumwa/tools/mailcatcher"
)

// mailCatcherCmd is the mail server of a development installation.
type mailCatcherCmd struct {
	Listen string `help:"Address of the mail server (SMTP)." default:"127.0.0.1:2525"`
	Page   string `help:"Address of the page that shows the mails." default:"127.0.0.1:2782"`
}

// Run serves until ctx ends.
func (c *mailCatcherCmd) Run(ctx context.Context, out output) error {
	var config net.ListenConfig
	mails, err := config.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listening for mails: %w", err)
	}
	defer mails.Close()
	web, err := config.Listen(ctx, "tcp", c.Page)
	if err != nil {
		return fmt.Errorf("listening for the page: %w", err)
	}
	defer web.Close()
	slog.New(slog.NewTextHandler(out.stderr, nil)).Info("mail catcher listens", "smtp", mails.Addr().String(), "page",
		web.Addr().String())
	catcher := mailcatcher.New()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return catcher.ServeSMTP(ctx, mails) })
	group.Go(func() error { return catcher.ServePage(ctx, web) })
	return group.Wait()
}
