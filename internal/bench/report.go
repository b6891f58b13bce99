package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// report is what bench found.
type report struct {
	At      string  `json:"at"`
	CPUs    int     `json:"cpus"`
	Go      string  `json:"go"`
	Runs    int     `json:"runs"`
	Window  int     `json:"window"`
	Seconds float64 `json:"seconds"` // the whole measurement took

	Figures []figure                      `json:"figures"`
	CPU     map[string]map[string]float64 `json:"cpu_seconds_per_1000"` // by scenario and process
}

// figure is one line of the report, the median of its runs.
type figure struct {
	Name  string    `json:"name"`
	Value float64   `json:"value"`
	Unit  string    `json:"unit"`
	Runs  []float64 `json:"runs"`
	Bar   *bar      `json:"bar,omitempty"`
}

// bar is what an issue asks of a figure.
type bar struct {
	Least *float64 `json:"least,omitempty"`
	Most  *float64 `json:"most,omitempty"`
	Met   bool     `json:"met"`
}

func least(v float64) *bar { return &bar{Least: &v} }
func most(v float64) *bar  { return &bar{Most: &v} }

func (rep *report) add(name, unit string, b *bar, runs ...float64) {
	if len(runs) == 0 {
		return
	}
	value := median(runs)
	if b != nil {
		b.Met = (b.Least == nil || value >= *b.Least) && (b.Most == nil || value <= *b.Most)
	}
	rep.Figures = append(rep.Figures, figure{Name: name, Value: value, Unit: unit, Runs: runs, Bar: b})
}

// fill makes the report's lines of what was measured.
func (rep *report) fill(r *rig, one, many, bulk []load, paced []latency, requests [][]time.Duration) {
	rates := func(l load) float64 { return l.rate }
	rep.add(fmt.Sprintf("single sends all the way, %d connections, one company", r.o.conns), "messages/s", least(4000), each(one, rates)...)
	if len(many) > 0 {
		rep.add(fmt.Sprintf("the same, %d companies", len(r.companies)), "messages/s", nil, each(many, rates)...)
		share := make([]float64, len(one))
		for i := range one {
			share[i] = 100 * one[i].rate / many[i].rate
		}
		rep.add(fmt.Sprintf("one company against %d", len(r.companies)), "%", least(80), share...)
	}
	rep.add("single sends accepted", "messages/s", nil, each(one, func(l load) float64 { return l.accepted })...)
	at := fmt.Sprintf("request to submit_sm at %d/s", r.o.rate)
	rep.add(at+", p50", "ms", nil, each(paced, func(l latency) float64 { return milliseconds(l.p50) })...)
	rep.add(at+", p99", "ms", most(25), each(paced, func(l latency) float64 { return milliseconds(l.p99) })...)
	rep.add(at+", longest", "ms", nil, each(paced, func(l latency) float64 { return milliseconds(l.max) })...)
	rep.add("bulk of 500 all the way", "recipients/s", least(10_000), each(bulk, rates)...)
	rep.add("bulk of 500 accepted", "recipients/s", nil, each(bulk, func(l load) float64 { return l.accepted })...)
	if len(requests) > 0 {
		all := slices.Concat(requests...)
		slices.Sort(all)
		rep.add("one bulk request on an idle gateway, p50", "ms", nil, milliseconds(quantile(all, 0.5)))
		rep.add("one bulk request on an idle gateway, p99", "ms", most(60), milliseconds(quantile(all, 0.99)))
	}
	doubled := 0
	for _, l := range slices.Concat(one, many, bulk) {
		doubled += l.doubled
	}
	rep.add("webhooks that came twice", "", most(0), float64(doubled))

	rep.CPU = map[string]map[string]float64{}
	for name, loads := range map[string][]load{"singles, one company": one, "singles, many companies": many, "bulk": bulk} {
		if len(loads) == 0 {
			continue
		}
		rep.CPU[name] = map[string]float64{}
		for _, part := range parts {
			rep.CPU[name][part] = median(each(loads, func(l load) float64 { return l.cpu[part] }))
		}
	}
}

func (rep *report) missed() bool {
	return slices.ContainsFunc(rep.Figures, func(f figure) bool { return f.Bar != nil && !f.Bar.Met })
}

func (rep *report) print(to io.Writer) {
	widest := 0
	for _, f := range rep.Figures {
		widest = max(widest, len(f.Name))
	}
	for _, f := range rep.Figures {
		verdict := ""
		if f.Bar != nil {
			verdict = "missed, "
			if f.Bar.Met {
				verdict = "pass, "
			}
			if f.Bar.Least != nil {
				verdict += fmt.Sprintf("at least %.0f", *f.Bar.Least)
			} else {
				verdict += fmt.Sprintf("at most %.0f", *f.Bar.Most)
			}
		}
		fmt.Fprintf(to, "%-*s %9s %-13s %s\n", widest, f.Name, number(f.Value), f.Unit, verdict)
	}
	fmt.Fprintln(to, "\nCPU seconds per 1,000 messages")
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	scenarios := make([]string, 0, len(rep.CPU))
	for name := range rep.CPU {
		scenarios = append(scenarios, name)
	}
	slices.SortFunc(scenarios, func(a, b string) int { return cmp.Compare(b, a) })
	for _, part := range append([]string{""}, parts...) {
		fmt.Fprintf(table, "%s\t", part)
		for _, name := range scenarios {
			if part == "" {
				fmt.Fprintf(table, "%s\t", name)
			} else {
				fmt.Fprintf(table, "%.3f\t", rep.CPU[name][part])
			}
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // a terminal that is gone has nobody to be told
	fmt.Fprintf(to, "\nmeasured in %.0f s\n", rep.Seconds)
}

func number(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func each[T any](list []T, value func(T) float64) []float64 {
	values := make([]float64, len(list))
	for i, v := range list {
		values[i] = value(v)
	}
	return values
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}
