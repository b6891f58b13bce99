package handsets

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf16"
)

// What is taken of one message: more than any handset writes.
const (
	MaxParts  = 30
	maxOctets = MaxParts * 140 // of a message that came as a whole
	maxPart   = 254            // of a part: what short_message holds (SMPP 3.4, 5.2.22)
)

// Fits reports whether a message is short enough to be taken.
func (m *Inbound) Fits() bool {
	if m.Part != nil {
		return m.Part.Total <= MaxParts && len(m.Octets) <= maxPart
	}
	return len(m.Octets) <= maxOctets
}

// Assembly is what follows from a part and those that came before it.
type Assembly struct {
	Repeated bool      // it came before
	Whole    []Inbound // all parts in their order; nil: some are missing
	Given    []int64   // ids of parts of an older message under the same reference, which will not come to its end
}

// Assemble puts a part together with those that came before it (Store.Parts). Of two
// parts with the same number and different octets the younger begins another
// message: handsets use a reference again.
func Assemble(m Inbound, earlier []Inbound) (a Assembly) {
	same := func(other *Inbound) bool {
		return other.Part.Number == m.Part.Number && other.DataCoding == m.DataCoding && bytes.Equal(other.Octets, m.Octets)
	}
	var waiting []Inbound
	for i := range earlier {
		if same(&earlier[i]) {
			a.Repeated = true
			return a
		}
		if earlier[i].Outcome == Waiting {
			waiting = append(waiting, earlier[i])
		}
	}
	if slices.ContainsFunc(waiting, func(w Inbound) bool { return w.Part.Number == m.Part.Number }) {
		for i := range waiting {
			a.Given = append(a.Given, waiting[i].ID)
		}
		waiting = nil
	}
	parts := append(waiting, m)
	if len(parts) < m.Part.Total {
		return a
	}
	slices.SortFunc(parts, func(x, y Inbound) int { return x.Part.Number - y.Part.Number })
	for i := range parts {
		if parts[i].Part.Number != i+1 {
			return a
		}
	}
	a.Whole = parts
	return a
}

const (
	codingUCS2 = 8
	esmUDHI    = 0x40
)

// Text returns the text of a message by its parts; nil when one of them is not text
// in a coding we read. UCS-2 is decoded as a whole, because handsets cut a surrogate
// pair in two.
func Text(parts []Inbound) *string {
	var all strings.Builder
	if !slices.ContainsFunc(parts, func(p Inbound) bool { return p.DataCoding != codingUCS2 }) {
		var units []uint16
		for i := range parts {
			octets := payload(&parts[i])
			if len(octets)%2 != 0 {
				return nil
			}
			for j := 0; j < len(octets); j += 2 {
				units = append(units, binary.BigEndian.Uint16(octets[j:]))
			}
		}
		text := clean(string(utf16.Decode(units)))
		return &text
	}
	for i := range parts {
		if parts[i].Body == nil {
			return nil
		}
		all.WriteString(*parts[i].Body)
	}
	text := all.String()
	return &text
}

// payload returns the octets behind the user data header.
func payload(m *Inbound) []byte {
	if m.ESMClass&esmUDHI != 0 && len(m.Octets) > 0 && int(m.Octets[0]) < len(m.Octets) {
		return m.Octets[int(m.Octets[0])+1:]
	}
	return m.Octets
}
