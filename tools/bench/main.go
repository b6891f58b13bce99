// Command bench measures a whole gateway and where its work goes: HTTP in, ledger, queue,
// carrier, receipt, webhook out, everything durable. make bench builds bin/intumwa and
// runs it.
//
// It uses the gateway only from outside: the API, the configuration, intumwa admin, SMPP
// and webhooks. Of the database it reads only PostgreSQL's own statistics. So figures are
// comparable between gateways with different designs.
//
// Each scenario has its own databases, simulated carrier and gateway process. bench is
// the client and the webhook receiver. The cost of these two and of the carrier is shown
// separately.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

type options struct {
	binary    string
	scenarios string
	runs      int
	out       string
	profiles  string
	keep      bool
	limit     time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/intumwa", "the program to measure")
	flag.StringVar(&o.scenarios, "scenarios", "", "which, with commas; all: every one; none given: those marked * below")
	flag.IntVar(&o.runs, "runs", 3, "runs of each measurement; the median counts")
	flag.StringVar(&o.out, "o", "", "write the report as JSON to this file")
	flag.StringVar(&o.profiles, "profiles", "", "keep a CPU profile of the gateway for each load in this folder, of a "+
		"run that does not count")
	flag.BoolVar(&o.keep, "keep", false, "keep the folder with data and logs")
	flag.DurationVar(&o.limit, "limit", 2*time.Hour, "give up after so long")
	floor := flag.Bool("floor", false, "be the server of the scenario floor, at the addresses given")
	compare := flag.Bool("compare", false, "compare reports, all OLD ones before as many NEW ones, and measure nothing")
	flag.Usage = usage
	flag.Parse()

	var err error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	switch {
	case *compare:
		err = compareFiles(os.Stdout, flag.Args())
	case *floor:
		err = serveFloor(ctx, flag.Args())
	default:
		err = run(ctx, o)
	}
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func usage() {
	to := flag.CommandLine.Output()
	fmt.Fprintln(to, "bench [flags] | bench -compare OLD.json... NEW.json...\n\nscenarios:")
	for _, s := range scenarios {
		mark := ' '
		if s.short {
			mark = '*'
		}
		fmt.Fprintf(to, "  %c %-10s %s\n", mark, s.name, s.about)
	}
	fmt.Fprintln(to, "\nflags:")
	flag.PrintDefaults()
}

// run plays the scenarios, prints each result, and writes the file after each, so a later
// failure loses nothing.
func run(ctx context.Context, o options) (err error) {
	chosen, err := choose(o.scenarios)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "intumwa-bench-")
	if err != nil {
		return err
	}
	s, err := startServers(ctx, dir, o.keep)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	defer func() { err = errors.Join(err, s.end()) }()
	b := &bench{options: o, servers: s, dir: dir, report: newReport(ctx, o, s)}
	fmt.Print(b.report.head())
	for _, c := range chosen {
		if err := c.play(ctx, b, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// bench is a measurement in progress.
type bench struct {
	options
	*servers
	dir    string
	report *report
}

// record repeats a measurement of n messages and reports it.
func (b *bench) record(name, about string, n, runs int, once func() (measurement, error)) error {
	res := result{Name: name, About: about, Messages: n}
	for range runs {
		m, err := once()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		res.add(m)
	}
	b.report.Results = append(b.report.Results, res)
	res.print(os.Stdout, b.report.find(floorOf(name)))
	return b.report.write(b.out)
}

// load records a load and how the gateway spends its CPU time. A lost or repeated message
// is an error: the cost would mean nothing.
func (b *bench) load(ctx context.Context, w *world, name, about string, n int, load work) error {
	var took float64
	if err := b.record(name, about, n, b.runs, func() (measurement, error) {
		m, err := w.measured(ctx, n, load)
		took = m.elapsed
		if err == nil {
			err = w.once(n)
		}
		return m, err
	}); err != nil || b.profiles == "" {
		return err
	}
	profile := make(chan error, 1)
	go func() { profile <- w.profile(filepath.Join(b.profiles, name+".pprof"), max(1, int(took)-1)) }()
	_, err := load(ctx)
	return errors.Join(err, <-profile)
}
