package reports

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"intumwa/messages"
)

// Limits of a carrier's list.
const (
	maxLine  = 64 << 10
	maxLines = 100_000_000
)

// ErrList means that a carrier's list cannot be read.
var ErrList = errors.New("it is no CSV list of message ids")

// EachListed calls do with the ids of a carrier's list: the column message_id, or without such a heading the first
// column. Cells are separated by commas, semicolons or tabs, as the first line has them. Empty cells are left out. The
// memory does not depend on the list's length. The errors are [ErrList] and those of do and of reading.
func EachListed(list io.Reader, do func(id string) error) error {
	lines := bufio.NewScanner(list)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	column, separator := 0, ","
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
			separator = separatorOf(line)
			heads := cellsOf(line, separator)
			found := slices.IndexFunc(heads, func(head string) bool {
				return strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(head), "_", ""), " ", "") == "messageid"
			})
			switch {
			case found >= 0:
				column = found
				continue
			case !strings.ContainsAny(heads[0], "0123456789"): // a heading
				continue
			}
		}
		if n > maxLines {
			return fmt.Errorf("%w: it has more than %d lines", ErrList, maxLines)
		}
		cells := cellsOf(line, separator)
		if column >= len(cells) || cells[column] == "" {
			continue
		}
		if err := do(cells[column]); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%w: a line has more than %d bytes", ErrList, maxLine)
	} else if err != nil {
		return err
	}
	return nil
}

// separatorOf returns the separator of a list whose first line has most of it.
func separatorOf(line string) string {
	return slices.MaxFunc([]string{",", ";", "\t"}, func(a, b string) int { return strings.Count(line, a) - strings.Count(line, b) })
}

// cellsOf splits a line. Quotation marks around a cell keep separators in it; two of them are one.
func cellsOf(line, separator string) (cells []string) {
	for {
		trimmed := strings.TrimLeft(line, " ")
		if !strings.HasPrefix(trimmed, `"`) {
			cell, rest, more := strings.Cut(line, separator)
			if cells = append(cells, strings.TrimSpace(cell)); !more {
				return cells
			}
			line = rest
			continue
		}
		cell, rest := "", trimmed[1:]
		for {
			part, after, closed := strings.Cut(rest, `"`)
			cell += part
			if rest = after; !closed || !strings.HasPrefix(after, `"`) {
				break
			}
			cell, rest = cell+`"`, after[1:]
		}
		cells = append(cells, strings.TrimSpace(cell))
		_, after, more := strings.Cut(rest, separator)
		if !more {
			return cells
		}
		line = after
	}
}

// DifferenceHeads are the columns of the messages behind an invoice's difference.
var DifferenceHeads = []string{"message_id", "id", "company_id", "accepted_at", "carrier", "status", "test", "segments_accepted", "credits_charged"}

// DifferenceRow is a row of DifferenceHeads.
func DifferenceRow(d *messages.Discrepancy) []any {
	return []any{d.MessageID, d.ULID.String(), int64(d.Company), d.AcceptedAt, d.Carrier, d.Status.String(), d.Test, d.Accepted, d.Charged}
}
