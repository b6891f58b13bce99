package stories

import (
	"strings"
	"testing"
	"unicode/utf16"

	"intumwa/tools/carriersim"
)

// Six hundred characters of GSM-7, some of which take two septets: what is
// billed is what is on the wire, every segment is whole, and the handset shows
// what was sent. The text is shifted so that every cut meets a pair.
func TestSixHundredCharacters(t *testing.T) {
	t.Parallel()
	w := play(t, scene{})
	shop := w.company("Isoko", 1000)
	// Whatever is cut, the extension characters of one of these texts lie there.
	pattern := []rune("€{}[]~\\|^é")
	type sent struct{ id, number, text string }
	var all []sent
	var billed int
	for shift := range 4 {
		text := []rune(strings.Repeat("a", shift))
		for len(text) < 600 {
			text = append(text, pattern[len(text)%len(pattern)])
		}
		number := w.number()
		a := shop.sends(number, string(text))
		// Nine of ten characters take two septets, 153 septets a segment.
		if a.ItemCount < 8 {
			t.Errorf("600 characters with extension characters are billed as %d segments, want 8 at least", a.ItemCount)
		}
		billed += a.ItemCount
		all = append(all, sent{a.ID, number, string(text)})
	}
	for _, s := range all {
		m := w.becomes(s.id, "sent")
		segments := w.lumitel.segmentsOf(s.number)
		if m.Encoding != "gsm7" || m.SegmentCount != len(segments) {
			t.Errorf("billed are %d segments of %s, on the wire are %d", m.SegmentCount, m.Encoding, len(segments))
		}
		wholeSegments(t, segments, 153, func(payload []byte) bool { return payload[len(payload)-1] != 0x1B })
		theHandsetShows(t, w, s.number, s.text)
	}
	if got := shop.credits(); got != int64(1000-billed) {
		t.Errorf("%d segments left %d of 1000 credits", billed, got)
	}
}

// An emoji that lies across the end of a segment goes whole into the next.
func TestEmojiAcrossASegmentBoundary(t *testing.T) {
	t.Parallel()
	w := play(t, scene{})
	shop := w.company("Isoko", 1000)
	for before := 65; before <= 70; before++ {
		text := strings.Repeat("ж", before) + "😀" + strings.Repeat("ж", 60) + "😀😀😀"
		number := w.number()
		a := shop.sends(number, text)
		w.becomes(a.ID, "sent")
		segments := w.lumitel.segmentsOf(number)
		if len(segments) != a.ItemCount {
			t.Errorf("billed are %d segments, on the wire are %d", a.ItemCount, len(segments))
		}
		wholeSegments(t, segments, 134, func(payload []byte) bool {
			first, last := codeUnit(payload, 0), codeUnit(payload, len(payload)-2)
			return !(first >= 0xDC00 && first < 0xE000) && !(last >= 0xD800 && last < 0xDC00)
		})
		theHandsetShows(t, w, number, text)
	}
	// Seventy code units fit one segment without a header; the emoji counts two.
	number := w.number()
	if a := shop.sends(number, strings.Repeat("ж", 68)+"😀"); a.ItemCount != 1 {
		t.Errorf("70 code units are billed as %d segments, want 1", a.ItemCount)
	}
	if len(utf16.Encode([]rune("😀"))) != 2 {
		t.Fatal("the emoji of this story is no pair")
	}
}

func codeUnit(payload []byte, at int) uint16 {
	return uint16(payload[at])<<8 | uint16(payload[at+1])
}

// wholeSegments checks what the segments of one message have in common, and
// that none is larger than octets nor cut where it must not be.
func wholeSegments(t *testing.T, segments []carriersim.Submit, octets int, whole func(payload []byte) bool) {
	t.Helper()
	for i, s := range segments {
		first := segments[0]
		switch {
		case s.Concat == nil || s.Concat.By != "udh8" || s.ESMClass != 0x40:
			t.Errorf("segment %d: esm_class %#x, concatenation %+v; want 0x40 and an 8-bit reference", i+1, s.ESMClass, s.Concat)
			continue
		case s.Concat.Ref != first.Concat.Ref || int(s.Concat.Total) != len(segments) || int(s.Concat.Seq) != i+1 || s.Session != first.Session:
			t.Errorf("segment %d is %+v on session %d; want %d of %d, in order, on session %d", i+1, *s.Concat, s.Session, i+1, len(segments), first.Session)
		}
		payload := s.ShortMessage[6:]
		if len(payload) == 0 || len(payload) > octets {
			t.Errorf("segment %d has %d octets, want 1 to %d", i+1, len(payload), octets)
		} else if !whole(payload) {
			t.Errorf("segment %d is cut within a pair: % X … % X", i+1, payload[:2], payload[len(payload)-2:])
		}
	}
}

func theHandsetShows(t *testing.T, w *world, number, text string) {
	t.Helper()
	shown := w.lumitel.shown(number)
	if len(shown) != 1 || !shown[0].Complete || !shown[0].InOrder || shown[0].Text != text {
		t.Errorf("the handset shows %+v, want %q", shown, text)
	}
}

// A company that wants it has its typographic characters replaced, which saves
// segments; nobody else's text is touched.
func TestSmartEncoding(t *testing.T) {
	t.Parallel()
	w := play(t, scene{})
	smart, plain := w.silentCompany("Ubwenge", 10), w.silentCompany("Isoko", 10)
	var set struct {
		SmartEncoding bool `json:"smart_encoding"`
	}
	w.orders(&set, "", "company", "set", "--id", smart.number(), "--smart-encoding=true")
	if !set.SmartEncoding {
		t.Fatal("smart encoding was ordered and is not on")
	}
	const (
		written  = "« L’été » — c’est ici… " // four characters that GSM-7 lacks, seven times
		replaced = `" L'été " - c'est ici... `
	)
	for _, c := range []struct {
		from             *company
		text, shown, enc string
		segments         int
	}{
		{smart, strings.Repeat(written, 4), strings.Repeat(replaced, 4), "gsm7", 1},
		{plain, strings.Repeat(written, 4), strings.Repeat(written, 4), "ucs2", 2},
		{smart, "Murakoze 😀 — cane", "Murakoze 😀 — cane", "ucs2", 1}, // it would gain nothing
	} {
		number := w.number()
		a := c.from.sends(number, c.text)
		if a.ItemCount != c.segments {
			t.Errorf("%s: %q is billed as %d segments, want %d", c.from.sender, c.text, a.ItemCount, c.segments)
		}
		if m := w.becomes(a.ID, "sent"); m.Encoding != c.enc {
			t.Errorf("%s: %q went as %s, want %s", c.from.sender, c.text, m.Encoding, c.enc)
		}
		theHandsetShows(t, w, number, c.shown)
	}
}
