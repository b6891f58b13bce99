// Command bench measures a whole gateway: HTTP in, ledger, belt, carrier,
// receipt, webhook out, everything durable. make bench builds bin/intumwa and
// runs it.
//
// It starts private servers, the simulated carrier and the gateway as
// processes of their own, provisions companies through intumwa admin, and is
// itself the client and the webhook receiver, so that the CPU of each part can
// be read from the system. Every figure is the median of -runs.
//
// The bars of the issues are shown beside the figures; only -strict makes a
// missed one an error.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

type options struct {
	binary    string
	runs      int
	messages  int
	bulks     int
	companies int
	conns     int
	window    int
	rate      int
	paced     time.Duration
	json      string
	strict    bool
	keep      bool
	limit     time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/intumwa", "the program to measure")
	flag.IntVar(&o.runs, "runs", 3, "runs of each measurement; the median counts")
	flag.IntVar(&o.messages, "messages", 20_000, "single sends a run")
	flag.IntVar(&o.bulks, "bulks", 60, "bulk requests of 500 recipients a run; 0 leaves them out")
	flag.IntVar(&o.companies, "companies", 100, "companies that send together, compared with one alone; 1 leaves them out")
	flag.IntVar(&o.conns, "conns", 64, "connections of the client")
	flag.IntVar(&o.window, "window", 100, "window of the carrier's link")
	flag.IntVar(&o.rate, "rate", 200, "messages a second while latency is measured")
	flag.DurationVar(&o.paced, "paced", 5*time.Second, "how long latency is measured in each run")
	flag.StringVar(&o.json, "json", "", "write the report as JSON to this file")
	flag.BoolVar(&o.strict, "strict", false, "fail when a bar is missed")
	flag.BoolVar(&o.keep, "keep", false, "keep the folder with data and logs")
	flag.DurationVar(&o.limit, "limit", 10*time.Minute, "give up after so long")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	missed, err := run(ctx, o)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	case missed && o.strict:
		os.Exit(1)
	}
}

// run measures and reports; missed says that a bar was.
func run(ctx context.Context, o options) (missed bool, err error) {
	began := time.Now()
	r, err := newRig(ctx, o)
	if err != nil {
		return false, err
	}
	defer r.close()
	rep := &report{At: began.UTC().Format(time.RFC3339), CPUs: runtime.NumCPU(), Go: runtime.Version(), Runs: o.runs, Window: o.window}
	fmt.Printf("%d CPUs for everything, window %d, %d runs; PostgreSQL with fsync, Redis with its log\n\n", rep.CPUs, o.window, o.runs)
	if err := r.measure(ctx, rep); err != nil {
		return false, fmt.Errorf("%w\n%s", err, r.logTail())
	}
	rep.Seconds = time.Since(began).Round(time.Second).Seconds()
	rep.print(os.Stdout)
	if o.json != "" {
		text, err := json.MarshalIndent(rep, "", "  ")
		if err == nil {
			err = os.WriteFile(o.json, append(text, '\n'), 0o644) //nolint:gosec // figures, for everybody to read
		}
		if err != nil {
			return false, fmt.Errorf("writing %s: %w", o.json, err)
		}
	}
	return rep.missed(), nil
}

// measure plays every scenario.
func (r *rig) measure(ctx context.Context, rep *report) error {
	if _, err := r.singles(ctx, r.companies[:1], min(r.o.messages, 3000)); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	var one, many, bulk []load
	var paced []latency
	var requests [][]time.Duration
	for i := range r.o.runs {
		fmt.Fprintf(os.Stderr, "run %d of %d\n", i+1, r.o.runs)
		l, err := r.singles(ctx, r.companies[:1], r.o.messages)
		if err != nil {
			return fmt.Errorf("one company: %w", err)
		}
		one = append(one, l)
		if len(r.companies) > 1 {
			if l, err = r.singles(ctx, r.companies, r.o.messages); err != nil {
				return fmt.Errorf("%d companies: %w", len(r.companies), err)
			}
			many = append(many, l)
		}
		p, err := r.pacedSingles(ctx)
		if err != nil {
			return fmt.Errorf("latency: %w", err)
		}
		paced = append(paced, p)
		if r.o.bulks == 0 {
			continue
		}
		if l, err = r.bulkLoad(ctx); err != nil {
			return fmt.Errorf("bulk: %w", err)
		}
		bulk = append(bulk, l)
		times, err := r.bulkRequests(ctx)
		if err != nil {
			return fmt.Errorf("single bulk requests: %w", err)
		}
		requests = append(requests, times)
	}
	rep.fill(r, one, many, bulk, paced, requests)
	return nil
}
