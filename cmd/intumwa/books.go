package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/billing"
)

const (
	booksInterval = time.Hour
	booksFirst    = 10 * time.Second // after the start, which has other work
)

// books proves the ledger every hour: balance = sum of the ledger, without a
// gap. It reads the whole ledger, so it does not do it more often.
type books struct {
	ledger *billing.Ledger
	log    *slog.Logger

	mismatches, checked prometheus.Gauge
}

func newBooks(ledger *billing.Ledger, log *slog.Logger, reg prometheus.Registerer) *books {
	b := &books{ledger: ledger, log: log,
		mismatches: prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_ledger_mismatches",
			Help: "Companies whose balance was not the sum of their ledger when it was last checked."}),
		checked: prometheus.NewGauge(prometheus.GaugeOpts{Name: "intumwa_ledger_checked_timestamp_seconds",
			Help: "When the ledger was last checked; before that, when the process started."}),
	}
	b.checked.SetToCurrentTime()
	reg.MustRegister(b.mismatches, b.checked)
	return b
}

// Run checks until ctx ends.
func (b *books) Run(ctx context.Context) error {
	for wait := booksFirst; ; wait = booksInterval {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		companies, mismatches, err := b.ledger.Audit(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			b.log.Error("ledger check failed", "error", err)
			continue
		case mismatches > 0:
			b.log.Error("ledger mismatch found: run intumwa admin audit", "companies", companies, "mismatches", mismatches)
		}
		b.mismatches.Set(float64(mismatches))
		b.checked.SetToCurrentTime()
	}
}
