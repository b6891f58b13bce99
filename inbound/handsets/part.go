package handsets

import (
	"slices"
	"unicode/utf8"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Limits of one message: more than any handset writes.
const (
	MaxParts = 30
	maxBytes = MaxParts * 140 // of a message in one piece
	maxPart  = 254            // of a part: the size of short_message (SMPP 3.4, 5.2.22)
)

// Fits reports whether a message is within the limits.
func (m *Inbound) Fits() bool {
	if m.Part != nil {
		return m.Part.Total <= MaxParts && len(m.Octets) <= maxPart
	}
	return len(m.Octets) <= maxBytes
}

// Assembly is the result of a part and the earlier ones.
type Assembly struct {
	Whole []Inbound // all parts in order; nil: some are missing
	Given []Inbound // parts, in order, of an older message with the same reference, which will not be completed
}

// Assemble joins a part with earlier ones (Store.Parts), if it does not repeat one of them. A part with an earlier
// one's number and other bytes begins another message: handsets reuse references.
func Assemble(m Inbound, earlier []Inbound) (a Assembly, repeats Repetition) {
	if repeats = m.repeatsPart(earlier); repeats != Original {
		return a, repeats
	}
	var waiting []Inbound
	for i := range earlier {
		if earlier[i].Outcome == Waiting {
			waiting = append(waiting, earlier[i])
		}
	}
	if slices.ContainsFunc(waiting, func(w Inbound) bool { return w.Part.Number == m.Part.Number }) {
		a.Given, waiting = waiting, nil
		SortParts(a.Given)
	}
	parts := append(waiting, m)
	if len(parts) < m.Part.Total {
		return a, Original
	}
	SortParts(parts)
	for i := range parts {
		if parts[i].Part.Number != i+1 {
			return a, Original
		}
	}
	a.Whole = parts
	return a, Original
}

// SortParts puts parts of a message in order.
func SortParts(parts []Inbound) {
	slices.SortFunc(parts, func(x, y Inbound) int { return x.Part.Number - y.Part.Number })
}

// Partial reports whether parts of a message, in order, are not all of it.
func Partial(parts []Inbound) bool { return parts[0].Part != nil && len(parts) < parts[0].Part.Total }

const esmUDHI = 0x40

// Gap stands in a text for one or several successive parts that did not arrive.
const Gap = "[…]"

// Text returns the text of a message's parts, in order, with a Gap where some are missing; nil when none of them is
// text in a supported coding. Among others such a part is U+FFFD.
func Text(parts []Inbound) *string {
	if !Partial(parts) {
		return joined(parts)
	}
	var text string
	read, next := false, 1
	for from := 0; from < len(parts); {
		to := from + 1
		for to < len(parts) && parts[to].Part.Number == parts[to-1].Part.Number+1 {
			to++
		}
		if parts[from].Part.Number > next {
			text += Gap
		}
		if run := joined(parts[from:to]); run != nil {
			text, read = text+*run, true
		} else {
			text += "\uFFFD"
		}
		next, from = parts[to-1].Part.Number+1, to
	}
	if !read {
		return nil
	}
	if next <= parts[0].Part.Total {
		text += Gap
	}
	return &text
}

// joined is Text for successive parts. UCS-2 is decoded as a whole: handsets cut surrogate pairs in two.
func joined(parts []Inbound) *string {
	var text string
	if !slices.ContainsFunc(parts, func(p Inbound) bool { return !sms.IsUCS2(p.DataCoding) }) {
		var whole []byte
		for i := range parts {
			payload := parts[i].Payload()
			whole = append(whole, payload...)
			if len(payload)%2 != 0 { // half a code unit: the next part begins with a whole one
				whole = append(whole[:len(whole)-1], 0xFF, 0xFD)
			}
		}
		text, _ = sms.Decode(parts[0].DataCoding, sms.DefaultGSM7, whole)
		text = postgres.Text(text)
		return &text
	}
	if text, ok := cutUTF8(parts); ok {
		return &text
	}
	read := false
	for i := range parts {
		if parts[i].Body == nil {
			text += "\uFFFD"
			continue
		}
		text += *parts[i].Body
		read = true
	}
	if !read {
		return nil
	}
	return &text
}

// cutUTF8 returns the text of parts in UTF-8 of which one ends within a character: alone, neither it nor the next is
// UTF-8.
func cutUTF8(parts []Inbound) (text string, ok bool) {
	var whole []byte
	cut := false
	for i := range parts {
		payload := parts[i].Payload()
		if parts[i].DataCoding != parts[0].DataCoding || parts[i].Body == nil {
			return "", false
		}
		whole, cut = append(whole, payload...), cut || !utf8.Valid(payload)
	}
	if !cut || !utf8.Valid(whole) {
		return "", false
	}
	text, ok = sms.Decode(parts[0].DataCoding, sms.DefaultUTF8, whole)
	return postgres.Text(text), ok && text == string(whole) // not of a data_coding with another character set
}

// Words returns the first words of the message that m is, or begins, and whose text is text. If m is not text, its
// bytes are read as ASCII: a STOP counts in every coding.
func (m *Inbound) Words(text *string) Words {
	if m.Body == nil || text == nil {
		return FirstWords(postgres.Text(string(m.Payload())))
	}
	return FirstWords(*text)
}

// Payload returns the bytes after the user data header.
func (m *Inbound) Payload() []byte {
	if m.ESMClass&esmUDHI != 0 && len(m.Octets) > 0 && int(m.Octets[0]) < len(m.Octets) {
		return m.Octets[int(m.Octets[0])+1:]
	}
	return m.Octets
}
