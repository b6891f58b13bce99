// Command drill tests the alerts: a real Prometheus with the rules of
// deployments/prometheus watches a real gateway with simulated carriers while one fault
// after another is played. The right alert must fire within two minutes and no other
// may page; under normal load none may fire. Only the scrape and evaluation intervals
// are shorter than in production.
//
// scripts/drill.sh starts it with its own servers (`make drill`).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type options struct {
	intumwa, prometheus string // programs
	rules               string // folder
	dir                 string // for configuration, logs and data
	databaseURL         string
	redisURL            string
	normal              time.Duration
	rate                float64
	only                string
	disk                bool // PostgreSQL has its own filesystem, which may be filled
}

func main() {
	var o options
	flag.StringVar(&o.intumwa, "intumwa", "bin/intumwa", "the gateway")
	flag.StringVar(&o.prometheus, "prometheus", "prometheus", "the Prometheus server")
	flag.StringVar(&o.rules, "rules", "deployments/prometheus/rules", "folder of the rules")
	flag.StringVar(&o.dir, "dir", "", "folder for everything that is written")
	flag.DurationVar(&o.normal, "normal", 10*time.Minute, "how long normal load has to fire nothing")
	flag.Float64Var(&o.rate, "rate", 5, "messages a second and carrier")
	flag.StringVar(&o.only, "only", "", "play the faults whose name contains this")
	flag.BoolVar(&o.disk, "disk", false, "PostgreSQL's files are on a small filesystem of their own: play it full as well")
	flag.Parse()
	o.databaseURL, o.redisURL = os.Getenv("DATABASE_URL"), os.Getenv("REDIS_URL")

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	report, err := drill(ctx, o)
	stop()
	if report != nil {
		report.print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "drill:", err)
		os.Exit(1)
	}
}

func drill(ctx context.Context, o options) (*report, error) {
	s, err := newStage(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.end()
	r := &report{}
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	r.normal, r.normalFired, err = s.watchNormal(ctx, o.normal)
	if err != nil {
		return r, err
	}
	for _, f := range faults() {
		if !strings.Contains(f.name, o.only) {
			continue
		}
		if f.needsDisk && !o.disk {
			r.left = append(r.left, f.name)
			continue
		}
		result, err := s.play(ctx, f)
		if err != nil {
			return r, fmt.Errorf("%s: %w", f.name, err)
		}
		r.faults = append(r.faults, result)
		progress("%s", result.line())
	}
	return r, r.verdict()
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
