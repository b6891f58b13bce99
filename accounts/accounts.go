// Package accounts knows who may send as whom: users, API tokens, companies, senders and test numbers.
//
// Its hot path is [Accounts.Authenticate], which answers from memory with what Postgres said at most two
// seconds ago, and less long when a notice says that it was changed; everything else reads and writes Postgres directly. Balances are not here: billing keeps them.
package accounts

import (
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/vault"
)

// Options of [New]. The zero value of a field means its default.
type Options struct {
	TestSender string                // the test mode's sender name, which no company may register
	OTPKey     []byte                // key under which one-time codes are hashed; the same in every process
	SecretKey  *[32]byte             // encrypts the second factors' secrets at rest; nil: stored as they are
	Log        *slog.Logger          // nil: discarded
	Metrics    prometheus.Registerer // nil: not registered

	// Replacements is how often a verified test number may be replaced by its owner.
	Replacements int
}

// Accounts is the room's door. Its methods may be called from many goroutines at once.
type Accounts struct {
	pool database
	opts Options
	log  *slog.Logger

	cache   *cache
	lastUse *lastUse
	hashing chan struct{} // places for password hashing
	vault   vault.Vault
}

// New does no I/O and starts nothing; [Accounts.Run] does.
func New(pool *pgxpool.Pool, opts Options) *Accounts {
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Accounts{
		pool:    pool,
		opts:    opts,
		log:     log,
		lastUse: newLastUse(),
		hashing: make(chan struct{}, concurrentHashes),
		vault:   vault.New(opts.SecretKey, "user"),
	}
	a.cache = newCache(a.load, opts.Metrics)
	return a
}
