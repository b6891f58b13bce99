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
	versions, err := postgres.MigrateFrom(ctx, string(c.Database.Whole()))
	if err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	said := fmt.Sprintf("the schema is migrated to version %d", versions[1])
	if versions[0] == versions[1] {
		said = fmt.Sprintf("nothing to do: the schema is at version %d already", versions[1])
	}
	_, err = fmt.Fprintln(p.stdout, said)
	return err
}
