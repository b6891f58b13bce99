//go:build !lockorder

package postgres

import "github.com/jackc/pgx/v5"

func traceLocks(*pgx.ConnConfig) {}
