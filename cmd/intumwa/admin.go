package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/configs"
	"intumwa/internal/postgres"
)

// adminCmd is the operators' part. Its JSON keys are an interface: they are added to, never renamed.
type adminCmd struct {
	JSON bool `name:"json" help:"Print one JSON object or array."`

	User       adminUserCmd       `cmd:"" help:"Users."`
	Token      adminTokenCmd      `cmd:"" help:"API tokens."`
	Company    adminCompanyCmd    `cmd:"" help:"Companies."`
	Credits    adminCreditsCmd    `cmd:"" help:"SMS credits."`
	Sender     adminSenderCmd     `cmd:"" help:"Sender names."`
	Webhook    adminWebhookCmd    `cmd:"" help:"Webhook endpoints."`
	TestNumber adminTestNumberCmd `cmd:"" name:"test-number" help:"Test numbers."`
	Message    adminMessageCmd    `cmd:"" help:"Messages."`
	Batch      adminBatchCmd      `cmd:"" help:"Bulk and template sends."`
	Audit      adminAuditCmd      `cmd:"" help:"Prove that the books are right."`
	Top        adminTopCmd        `cmd:"" help:"List who sends most."`
	Links      adminLinksCmd      `cmd:"" help:"List the links to the carriers."`
	Link       adminLinkCmd       `cmd:"" help:"Pause, resume or trace a link."`
	Inbound    adminInboundCmd    `cmd:"" help:"List messages from handsets."`
	Log        adminLogCmd        `cmd:"" help:"List who changed what, by page or command."`
	Restored   adminRestoredCmd   `cmd:"" help:"After a restore: the ids of messages and webhooks jump ahead, so that none comes twice."`
}

// operator is what an admin command works with.
type operator struct {
	*program
	config *configs.Config
	pool   *pgxpool.Pool
}

// run opens the database, lets work do its part and prints the result, which may come beside an error.
func (a *adminCmd) run(ctx context.Context, p *program, work func(*operator) (any, error)) error {
	config, err := p.config()
	if err != nil {
		return err
	}
	pool, err := postgres.Open(ctx, string(config.Database.Whole()), postgres.Options{MaxConns: 4})
	if err != nil {
		return fmt.Errorf("opening the database: %w", err)
	}
	defer pool.Close()
	if err := postgres.Current(ctx, pool); err != nil {
		return fmt.Errorf("looking at the database's schema: %w", err)
	}
	result, err := work(&operator{program: p, config: config, pool: pool})
	if result == nil {
		return err
	}
	write := printHuman
	if a.JSON {
		write = printJSON
	}
	return errors.Join(err, write(p.stdout, result))
}

func (o *operator) accounts() *accounts.Accounts {
	return accounts.New(o.pool, accounts.Options{TestSender: o.config.TestSender})
}
