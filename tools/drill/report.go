package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// result is the outcome of a fault.
type result struct {
	fault
	after    time.Duration // until its alert fired; 0: it did not
	others   []string      // other alerts that paged
	warnings []string
}

func (r result) line() string {
	took := "did not fire"
	if r.after > 0 {
		took = fmt.Sprintf("%.0f s", r.after.Seconds())
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", r.name, r.alert, took, orNone(r.others), orNone(r.warnings))
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "–"
	}
	return strings.Join(list, ", ")
}

type report struct {
	normal      time.Duration
	normalFired []string
	faults      []result
	left        []string // faults that this machine cannot play
}

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "\nNormal load for %s fired: %s\n\n", r.normal.Round(time.Second), orNone(r.normalFired))
	fmt.Fprintln(w, "| fault | alert | after | also paged | also warned |\n|---|---|---|---|---|")
	for _, f := range r.faults {
		fmt.Fprintln(w, f.line())
	}
	if len(r.left) > 0 {
		fmt.Fprintf(w, "\nNot played: %s\n", strings.Join(r.left, ", "))
	}
}

// verdict returns an error that lists every deviation.
func (r *report) verdict() error {
	var wrong []error
	if len(r.normalFired) > 0 {
		wrong = append(wrong, fmt.Errorf("normal load fired %s", orNone(r.normalFired)))
	}
	for _, f := range r.faults {
		switch {
		case f.after == 0 || f.after > limit:
			wrong = append(wrong, fmt.Errorf("%s: %s did not fire within %s", f.name, f.alert, limit))
		case len(f.others) > 0:
			wrong = append(wrong, fmt.Errorf("%s: paged besides: %s", f.name, orNone(f.others)))
		}
	}
	return errors.Join(wrong...)
}
