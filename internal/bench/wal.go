package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// walKind is one kind of records in PostgreSQL's log, each with what it takes.
type walKind struct {
	Kind    string  `json:"kind"`
	Records float64 `json:"records_per_message"`
	Octets  float64 `json:"octets_per_message"` // without images of full pages
	full    float64 // octets of these
}

// readWAL counts what stands in the log between two places, the dearest kind
// first. It reads the log itself: what backends tell of their own comes up to
// ten seconds late.
func (s *servers) readWAL(ctx context.Context, from, to string) ([]walKind, error) {
	// Its commit has everything before it written.
	if _, err := s.admin.Exec(ctx, "SELECT pg_logical_emit_message(true, 'bench', '')"); err != nil {
		return nil, fmt.Errorf("having the log written: %w", err)
	}
	out, err := exec.CommandContext(ctx, s.waldump, "--stats=record", "-p", s.wal, "-s", from, "-e", to).Output() //nolint:gosec // PostgreSQL's own
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("reading the log of PostgreSQL: %w", err)
	}
	return parseWAL(string(out))
}

// walLine is "Heap/INSERT  4711 ( 12.34)  471100 ( 12.34)  8192 ( 0.12)  …": name,
// records, their octets, octets of full pages.
var walLine = regexp.MustCompile(`^(\S+)\s+(\d+) \([^)]*\)\s+(\d+) \([^)]*\)\s+(\d+) `)

func parseWAL(text string) ([]walKind, error) {
	var kinds []walKind
	for line := range strings.Lines(text) {
		fields := walLine.FindStringSubmatch(line)
		if fields == nil || fields[2] == "0" {
			continue
		}
		var n [3]float64
		for i, field := range fields[2:5] {
			var err error
			if n[i], err = strconv.ParseFloat(field, 64); err != nil {
				return nil, err
			}
		}
		kinds = append(kinds, walKind{Kind: fields[1], Records: n[0], Octets: n[1], full: n[2]})
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("pg_waldump counted nothing:\n%s", text)
	}
	slices.SortStableFunc(kinds, func(a, b walKind) int { return int(b.Octets - a.Octets) })
	return kinds, nil
}
