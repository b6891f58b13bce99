package main

import (
	"context"
	"fmt"

	"intumwa/internal/postgres"
)

type migrateCmd struct{}

// Run brings the schema up to date; it does nothing when it is.
func (migrateCmd) Run(ctx context.Context, p *program) error {
	c, err := p.config()
	if err != nil {
		return err
	}
	if err := postgres.Migrate(ctx, string(c.Database.Whole())); err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	_, err = fmt.Fprintln(p.stdout, "the schema is up to date")
	return err
}
