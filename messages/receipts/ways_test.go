package receipts

import (
	"fmt"
	"testing"
)

// TestWaysToASegment: every combination of id, reference, handset, link and order, with the receipt's outcome.
func TestWaysToASegment(t *testing.T) {
	nameless := func(reference uint16) Segment {
		return accepted(1, "", func(p *Segment) { p.Reference = reference })
	}
	type finds struct{ right, wrong, none bool }
	all, own, ownOrNone, never := finds{true, true, true}, finds{right: true}, finds{right: true, none: true}, finds{}
	d := newTest(t, Auto)
	for i, c := range []struct {
		way     string
		format  Format
		segment Segment
		receipt Receipt // the number is set below
		want    finds
	}{
		{"by its id, in the fixed format", Same, accepted(1, "00A1"), receipt("a1", "DELIVRD", ""), all},
		{"by its id, in the fixed format, decimal for hexadecimal", HexToDecimal, accepted(1, "1F"), receipt("031", "DELIVRD", ""), all},
		{"by its id, in the fixed format, hexadecimal for decimal", DecimalToHex, accepted(1, "31"), receipt("1F", "DELIVRD", ""), all},
		{"by its id, in the fixed format, over the other link", Same, accepted(1, "a1"), receipt("a1", "DELIVRD", "").over("l2"), ownOrNone},
		{"in another format than the fixed one", Same, accepted(1, "1F"), receipt("31", "DELIVRD", ""), never},
		{"by its id, as it is, in any format", Auto, accepted(1, "a1"), receipt("a1", "DELIVRD", ""), ownOrNone},
		{"by its id in decimal, in any format", Auto, accepted(1, "1F"), receipt("31", "DELIVRD", ""), own},
		{"by its id in hexadecimal, in any format", Auto, accepted(1, "31"), receipt("1f", "DELIVRD", ""), own},
		{"never answered, by its reference", Same, unanswered(1, 9), receipt("x", "DELIVRD", "").echoing(9), own},
		{"never answered, by its reference alone", Same, unanswered(1, 9), receipt("", "DELIVRD", "").echoing(9), own},
		{"never answered, by its reference, in any format", Auto, unanswered(1, 9), receipt("x", "DELIVRD", "").echoing(9), own},
		{"never answered, another reference", Same, unanswered(1, 9), receipt("x", "DELIVRD", "").echoing(8), never},
		{"never answered, no reference", Same, unanswered(1, 9), receipt("x", "DELIVRD", ""), never},
		{"accepted without an id, by its reference", Same, nameless(9), receipt("x", "DELIVRD", "").echoing(9), own},
		{"accepted without an id, by its reference alone", Same, nameless(9), receipt("", "DELIVRD", "").echoing(9), own},
		{"accepted with an id, by its reference", Same, accepted(1, "a1", func(p *Segment) { p.Reference = 9 }), receipt("x", "DELIVRD", "").echoing(9), never},
		{"another id", Same, accepted(1, "a1"), receipt("a2", "DELIVRD", ""), never},
	} {
		for j, number := range []struct {
			whose, as string
			want      bool
		}{
			{"right", numberOf(1), c.want.right}, {"right, as dialled here", numberOf(1)[3:], c.want.right}, {"right, with a plus", "+" + numberOf(1), c.want.right},
			{"wrong", another, c.want.wrong}, {"no", "", c.want.none}, {"hidden", "hidden", c.want.none},
		} {
			for k, order := range []string{"behind the response", "with the response", "ahead of the response"} {
				t.Run(c.way+", "+number.whose+" number, "+order, func(t *testing.T) {
					d := &testMatcher{TB: t, pool: d.pool, Matcher: New(fmt.Sprint("carrier", i, j, k), c.format)}
					r := c.receipt
					r.Number = number.as
					var settled []SegmentState
					switch k {
					case 0:
						d.record([]Segment{c.segment})
						settled = d.record(nil, r).Settled
					case 1:
						settled = d.record([]Segment{c.segment}, r).Settled
					case 2:
						d.record(nil, r)
						settled = d.record([]Segment{c.segment}).Settled
					}
					if found := len(settled) == 1; found != number.want || len(settled) > 1 {
						t.Errorf("settled %+v; want it found: %t", settled, number.want)
					}
					waits := d.count(`SELECT count(*) FROM receipts WHERE carrier = $1 AND message_id IS NULL`, d.carrier)
					if found := waits == 0; found != number.want {
						t.Errorf("%d in the inbox; want it found: %t", waits, number.want)
					}
				})
			}
		}
	}
}
