package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// measurement is the result of one run.
type measurement struct {
	figures    []single
	statements []statement
	wal        []walKind
	elapsed    float64 // seconds
}

type single struct {
	name, unit string
	value      float64
}

func (m *measurement) add(name, unit string, value float64) {
	m.figures = append(m.figures, single{name, unit, value})
}

func (m *measurement) value(name string) float64 {
	for _, f := range m.figures {
		if f.name == name {
			return f.value
		}
	}
	return 0
}

// report is a bench run.
type report struct {
	At         string   `json:"at"`
	Commit     string   `json:"commit"`
	CPUs       int      `json:"cpus"`
	Go         string   `json:"go"`
	PostgreSQL string   `json:"postgresql"`
	Load       string   `json:"load"` // of the machine, before
	Runs       int      `json:"runs"`
	Results    []result `json:"results"`
}

// result is one measurement with its figures over all runs.
type result struct {
	Name       string      `json:"name"`
	About      string      `json:"about"`
	Messages   int         `json:"messages"` // a run
	Figures    []figure    `json:"figures"`
	Statements []statement `json:"statements,omitempty"` // the most expensive of the last run
	WAL        []walKind   `json:"wal,omitempty"`        // of the last run
}

type figure struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Median float64   `json:"median"`
	Low    float64   `json:"low"`
	High   float64   `json:"high"`
	Runs   []float64 `json:"runs"`
}

func (r *result) add(m measurement) {
	for _, s := range m.figures {
		at := slices.IndexFunc(r.Figures, func(f figure) bool { return f.Name == s.name })
		if at < 0 {
			at = len(r.Figures)
			r.Figures = append(r.Figures, figure{Name: s.name, Unit: s.unit})
		}
		f := &r.Figures[at]
		f.Runs = append(f.Runs, s.value)
		f.Median, f.Low, f.High = median(f.Runs), slices.Min(f.Runs), slices.Max(f.Runs)
	}
	r.Statements, r.WAL = m.statements, m.wal
}

func newReport(ctx context.Context, o options, s *servers) *report {
	r := &report{At: time.Now().UTC().Format(time.RFC3339), CPUs: runtime.NumCPU(), Go: runtime.Version(),
		PostgreSQL: s.version, Runs: o.runs}
	if out, err := exec.CommandContext(ctx, o.binary, "version").Output(); err == nil { //nolint:gosec // ours
		r.Commit = strings.TrimSpace(string(out))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.Load = strings.Join(strings.Fields(string(text))[:3], " ")
	}
	return r
}

func (r *report) head() string {
	return fmt.Sprintf("%s on %d CPUs for everything (load %s), %s, PostgreSQL %s with fsync, Redis with its log; median "+
		"of %d runs (lowest – highest)\n",
		r.Commit, r.CPUs, r.Load, r.Go, r.PostgreSQL, r.Runs)
}

func (r *report) write(file string) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644) //nolint:gosec // figures, readable by all
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// find returns the result of a measurement, or nil.
func (r *report) find(name string) *result {
	for i := range r.Results {
		if r.Results[i].Name == name {
			return &r.Results[i]
		}
	}
	return nil
}

// figure returns the median of a figure, 0 if there is none.
func (r *result) figure(name string) float64 {
	for _, f := range r.Figures {
		if f.Name == name {
			return f.Median
		}
	}
	return 0
}

// print shows the figures, with multiples of the floor's if it was measured.
func (r *result) print(to io.Writer, floor *result) {
	fmt.Fprintf(to, "\n%s: %s; %d messages a run\n", r.Name, r.About, r.Messages)
	for _, f := range r.Figures {
		span := ""
		if len(f.Runs) > 1 {
			span = fmt.Sprintf("(%s – %s)", number(f.Low), number(f.High))
		}
		if floor != nil && f.Unit != "%" && floor.figure(f.Name) >= 0.01 { // below it is noise
			span += fmt.Sprintf(" %s x the floor", number(f.Median/floor.figure(f.Name)))
		}
		fmt.Fprintf(to, "  %-36s %9s %-15s %s\n", f.Name, number(f.Median), f.Unit, span)
	}
	if len(r.WAL) > 0 {
		fmt.Fprint(to, "  in the log:")
		for _, k := range r.WAL[:min(len(r.WAL), 8)] {
			fmt.Fprintf(to, " %s %s (%s)", k.Kind, number(k.Records), number(k.Bytes))
		}
		fmt.Fprintln(to)
	}
	for _, s := range r.Statements[:min(len(r.Statements), 8)] {
		fmt.Fprintf(to, "  %6s s/1,000 %6s calls %6s pages %5s WAL  %.80s\n",
			number(s.Seconds), number(s.Calls), number(s.Pages), number(s.WALRecords), s.Text)
	}
}

// number formats three significant digits.
func number(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// compareFiles compares older reports with the same number of newer ones.
func compareFiles(to io.Writer, files []string) error {
	half := len(files) / 2
	if half == 0 || len(files) != 2*half {
		return errors.New("-compare wants two reports, the older first, or as many older ones as newer ones")
	}
	old, err := readReports(files[:half])
	if err != nil {
		return err
	}
	now, err := readReports(files[half:])
	if err != nil {
		return err
	}
	return compare(to, old, now)
}

// readReports reads reports of one program as one.
func readReports(files []string) (all report, err error) {
	for _, file := range files {
		var one report
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &one)
		}
		if err != nil {
			return all, fmt.Errorf("reading %s: %w", file, err)
		}
		all.Commit, all.At, all.Load = one.Commit, one.At, one.Load
		for _, r := range one.Results {
			at := slices.IndexFunc(all.Results, func(have result) bool { return have.Name == r.Name })
			if at < 0 {
				all.Results = append(all.Results, r)
				continue
			}
			for _, f := range r.Figures {
				for _, value := range f.Runs {
					all.Results[at].add(measurement{figures: []single{{f.Name, f.Unit, value}}})
				}
			}
		}
	}
	return all, nil
}

// compare prints for each figure the ratio of new to old. ~ marks runs that overlap: the
// difference may be chance.
func compare(to io.Writer, old, now report) error {
	fmt.Fprintf(to, "old: %s, %s, load %s\nnew: %s, %s, load %s\n", old.Commit, old.At, old.Load, now.Commit, now.At,
		now.Load)
	common := 0
	for _, after := range now.Results {
		at := slices.IndexFunc(old.Results, func(r result) bool { return r.Name == after.Name })
		if at < 0 {
			continue
		}
		common++
		fmt.Fprintf(to, "\n%-40s %10s %10s %8s\n", after.Name, "old", "new", "new/old")
		for _, f := range after.Figures {
			i := slices.IndexFunc(old.Results[at].Figures, func(g figure) bool { return g.Name == f.Name })
			if i < 0 {
				continue
			}
			before := old.Results[at].Figures[i]
			ratio, chance := "–", ""
			if before.Median != 0 {
				ratio = fmt.Sprintf("%.2f", f.Median/before.Median)
			}
			if f.Low <= before.High && before.Low <= f.High {
				chance = "~"
			}
			fmt.Fprintf(to, "  %-38s %10s %10s %8s %1s %s\n", f.Name, number(before.Median), number(f.Median), ratio, chance,
				f.Unit)
		}
	}
	if common == 0 {
		return errors.New("the reports have no scenario in common")
	}
	return nil
}
