//go:build lockorder

package postgres

import (
	"github.com/jackc/pgx/v5"

	"intumwa/internal/lockorder"
)

// traceLocks has the order found in which transactions lock tables.
func traceLocks(config *pgx.ConnConfig) { config.Tracer = lockorder.Tracer() }
