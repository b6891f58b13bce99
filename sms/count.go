package sms

// Size is the size of a text on the wire.
type Size struct {
	Encoding   Encoding
	Characters int // Unicode code points
	Units      int // septets in GSM7, UTF-16 code units in UCS2
	Segments   int // short messages that it needs; the credits that it costs
}

// Measure returns a text's size, without allocating. An empty text has no segments.
func Measure(text string) Size {
	size, ok := measureGSM7(text)
	if !ok {
		size = measureUCS2(text)
	}
	return size
}

// Count returns a text's encoding and segments, without allocating. It is the billed count, and always the number of
// segments that SplitEncoded cuts (rule choices 4.1).
func Count(text string) (Encoding, int) {
	size := Measure(text)
	return size.Encoding, size.Segments
}

// measureGSM7 counts septets; it returns false at the first character outside the alphabet.
func measureGSM7(text string) (Size, bool) {
	size := Size{Encoding: GSM7}
	count := counter{capacity: concatSeptets}
	for _, r := range text {
		code := septetsOf(r)
		if code == notGSM7 {
			return Size{}, false
		}
		width := 1
		if code > 0xFF {
			width = 2
		}
		size.Characters++
		count.add(width)
	}
	size.Units, size.Segments = count.result(singleSeptets)
	return size, true
}

// measureUCS2 counts UTF-16 code units.
func measureUCS2(text string) Size {
	size := Size{Encoding: UCS2}
	count := counter{capacity: concatUnits}
	for _, r := range text {
		size.Characters++
		count.add(unitsOf(r))
	}
	size.Units, size.Segments = count.result(singleUnits)
	return size
}

// counter counts the segments of characters of one or two units, which are never cut.
type counter struct {
	capacity int // units of one segment of several
	total    int // units so far
	full     int // full segments so far
	fill     int // units in the last segment
}

func (c *counter) add(width int) {
	c.total += width
	c.fill += width
	if c.fill > c.capacity {
		c.full++
		c.fill = width
	}
}

// result returns the units and the segments. A text of at most single units is one segment, which needs no header.
func (c *counter) result(single int) (units, segments int) {
	switch {
	case c.total == 0:
		return 0, 0
	case c.total <= single:
		return c.total, 1
	}
	return c.total, c.full + 1
}

// UnicodeCharacters returns the characters that make a text UCS-2, each once, in the order of first use; nil for a
// GSM-7 text.
func UnicodeCharacters(text string) []string {
	var found []string
	var seen map[rune]struct{}
	for _, r := range text {
		if septetsOf(r) != notGSM7 {
			continue
		}
		if _, dup := seen[r]; dup {
			continue
		}
		if seen == nil {
			seen = make(map[rune]struct{})
		}
		seen[r] = struct{}{}
		found = append(found, string(r))
	}
	return found
}
