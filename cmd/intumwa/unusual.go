package main

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/messages/statistics"
	"intumwa/sms"
)

const (
	unusualInterval = 5 * time.Minute
	unusualFirst    = 30 * time.Second // after the start
	// unusualHour is the least number of messages in an hour that can be unusual. Fewer cost little and are a
	// small mailing.
	unusualHour = 5000
)

// watch looks every five minutes for companies with unusual volume, or with most messages
// to one block of numbers. A metric has their number; the log and `admin unusual` have
// the companies.
type watch struct {
	store    *statistics.Store
	log      *slog.Logger
	reported map[sms.CompanyID]statistics.Unusual

	volume, block prometheus.Gauge
}

func newWatch(store *statistics.Store, log *slog.Logger, reg prometheus.Registerer) *watch {
	senders := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "intumwa_unusual_senders",
		Help: "Companies with unusual sending."},
		[]string{"kind"})
	reg.MustRegister(senders)
	return &watch{store: store, log: log, volume: senders.WithLabelValues("volume"),
		block: senders.WithLabelValues("block")}
}

func (w *watch) Run(ctx context.Context) error {
	for wait := unusualFirst; ; wait = unusualInterval {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		list, err := w.store.Unusual(ctx, unusualHour)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			w.log.Warn("looking for unusual sending failed", "event", "unusual_sending_unchecked", "error", err)
		default:
			w.report(list)
		}
	}
}

// report logs new findings.
func (w *watch) report(list []statistics.Unusual) {
	now := make(map[sms.CompanyID]statistics.Unusual, len(list))
	volume, block := 0, 0
	for _, u := range list {
		now[u.Company] = u
		before := w.reported[u.Company]
		if u.Volume {
			if volume++; !before.Volume {
				w.log.Warn("company sends more in an hour than on any day of five weeks", "event", "company_sends_much",
					"company_id", int64(u.Company), "messages", u.Messages, "busiest_day", u.Busiest)
			}
		}
		if u.OneBlock {
			if block++; !before.OneBlock {
				w.log.Warn("company sends mostly to one block of numbers", "event", "company_sends_to_block", "company_id",
					int64(u.Company), "messages", u.Messages, "block", u.Block, "share", percent(u.Share))
			}
		}
	}
	w.reported = now
	w.volume.Set(float64(volume))
	w.block.Set(float64(block))
}

func percent(share float64) float64 { return math.Round(1000*share) / 10 }

type adminUnusualCmd struct {
	Least int `help:"Only companies that sent at least so many messages within the last hour." default:"5000"`
}

// do lists companies whose last hour is unusual.
func (c *adminUnusualCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Least < 1 {
		return nil, errors.New("--least must be at least 1")
	}
	unusual, err := statistics.New(o.pool).Unusual(ctx, int64(c.Least))
	if err != nil {
		return nil, err
	}
	list := []object{} // [] in JSON, not null
	for _, u := range unusual {
		company, err := o.companies().CompanyByID(ctx, int64(u.Company))
		if err != nil {
			return nil, err
		}
		list = append(list, object{{"company_id", company.ID}, {"name", company.Name},
			{"messages", u.Messages},    // in the last hour
			{"busiest_day", u.Busiest},  // on the busiest of the previous 35 days
			{"block", u.Block},          // common prefix of most numbers
			{"share", percent(u.Share)}, // of the latest messages in this block
			{"unusual_volume", u.Volume}, {"unusual_block", u.OneBlock}})
	}
	return list, nil
}
