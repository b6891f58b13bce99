package exports

import (
	"context"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"time"

	"intumwa/messages/lookup"
	"intumwa/texts"
)

// heads are the columns; their names are those of the API, in every language: programs read the file too.
var heads = []string{"message_id", "id", "client_reference", "batch", "from", "to", "segments", "encoding", "carrier",
	"link", "carrier_message_id",
	"accepted", "submitted", "final", "status", "reason", "description", "credits", "cost_center"}

// form is how a file is written.
type form struct {
	language  *texts.Language
	operators bool
	bodies    bool
	textsFrom time.Time // texts of messages that were accepted earlier are left out
}

func (f *form) begin(out *csv.Writer) error {
	if f.bodies {
		return out.Write(append(slices.Clone(heads), "body"))
	}
	return out.Write(heads)
}

// rows writes messages, with the credits that each cost after its refund.
func (e *Exports) rows(ctx context.Context, f *form, out *csv.Writer, page []lookup.Sent) error {
	refs := make([][16]byte, len(page))
	for i := range page {
		refs[i] = page[i].ULID
	}
	refunded, err := e.ledger.Refunded(ctx, refs)
	if err != nil {
		return err
	}
	for i := range page {
		m := &page[i]
		credits := int64(0)
		if !m.Test {
			credits = int64(m.Segments) - refunded[m.ULID]
		}
		if err := out.Write(f.cells(m, credits)); err != nil {
			return err
		}
	}
	return nil
}

// cells returns a message's row. Numbers have no plus sign, because it begins a formula in a spreadsheet.
func (f *form) cells(m *lookup.Sent, credits int64) []string {
	batch, number := "", string(m.Number)
	if m.BatchULID != nil {
		batch = m.BatchULID.String()
	}
	if f.operators {
		number = m.Number.Obscured()
	}
	var links, ids []string // at the carrier that took it
	var submitted *time.Time
	for i := range m.At {
		s := &m.At[i]
		if s.Carrier != m.Carrier {
			continue
		}
		if submitted == nil {
			submitted = &s.SubmittedAt
		}
		links, ids = once(links, s.Link), once(ids, s.ID())
	}
	final := m.SentAt
	if final == nil {
		final = m.FailedAt
	}
	why, _ := Describe(f.language, m.FailureReason)
	row := []string{strconv.FormatInt(m.ID, 10), m.ULID.String(), texts.Cell(m.Reference), batch, texts.Cell(m.Sender),
		strings.TrimPrefix(number, "+"),
		strconv.Itoa(m.Segments), m.Encoding.String(), texts.Cell(m.Carrier), texts.Cell(strings.Join(links, " ")),
		texts.CellID(strings.Join(ids, " ")),
		texts.CellTime(&m.CreatedAt), texts.CellTime(submitted), texts.CellTime(final), m.Status.String(),
		texts.Cell(m.FailureReason),
		texts.Cell(why), strconv.FormatInt(credits, 10), texts.Cell(m.CostCenter)}
	if f.bodies {
		text := ""
		if !m.CreatedAt.Before(f.textsFrom) {
			text = texts.Cell(m.Body)
		}
		row = append(row, text)
	}
	return row
}

// once adds a text that is not empty and not there yet.
func once(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
