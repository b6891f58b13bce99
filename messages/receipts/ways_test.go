package receipts

import (
	"fmt"
	"testing"

	"intumwa/sms"
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
		{"by its id, in the fixed format, decimal for hexadecimal", HexToDecimal, accepted(1, "1F"),
			receipt("031", "DELIVRD", ""), all},
		{"by its id, in the fixed format, hexadecimal for decimal", DecimalToHex, accepted(1, "31"),
			receipt("1F", "DELIVRD", ""), all},
		{"by its id, in the fixed format, over the other link", Same, accepted(1, "a1"),
			receipt("a1", "DELIVRD", "").over("l2"), ownOrNone},
		{"in another format than the fixed one", Same, accepted(1, "1F"), receipt("31", "DELIVRD", ""), never},
		{"by its id, as it is, in any format", Auto, accepted(1, "a1"), receipt("a1", "DELIVRD", ""), ownOrNone},
		{"by its id in decimal, in any format", Auto, accepted(1, "1F"), receipt("31", "DELIVRD", ""), own},
		{"by its id in hexadecimal, in any format", Auto, accepted(1, "31"), receipt("1f", "DELIVRD", ""), own},
		{"never answered, by its reference", Same, unanswered(1, 9), receipt("x", "DELIVRD", "").echoing(9), own},
		{"never answered, by its reference alone", Same, unanswered(1, 9), receipt("", "DELIVRD", "").echoing(9), own},
		{"never answered, by its reference, in any format", Auto, unanswered(1, 9), receipt("x", "DELIVRD", "").echoing(9),
			own},
		{"never answered, another reference", Same, unanswered(1, 9), receipt("x", "DELIVRD", "").echoing(8), never},
		{"never answered, no reference", Same, unanswered(1, 9), receipt("x", "DELIVRD", ""), never},
		{"accepted without an id, by its reference", Same, nameless(9), receipt("x", "DELIVRD", "").echoing(9), own},
		{"accepted without an id, by its reference alone", Same, nameless(9), receipt("", "DELIVRD", "").echoing(9), own},
		{"accepted with an id, by its reference", Same, accepted(1, "a1", func(p *Segment) { p.Reference = 9 }),
			receipt("x", "DELIVRD", "").echoing(9), never},
		{"another id", Same, accepted(1, "a1"), receipt("a2", "DELIVRD", ""), never},
	} {
		for j, number := range []struct {
			whose, as string
			want      bool
		}{
			{"right", numberOf(1), c.want.right}, {"right, as dialled here", numberOf(1)[3:], c.want.right},
			{"right, with a plus", "+" + numberOf(1), c.want.right},
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

// TestTrust: a receipt of which only the text says so settles a segment with its id and its handset, and nothing else;
// one of a carrier that is not known to send such receipts settles nothing, and waits for nothing.
func TestTrust(t *testing.T) {
	for _, format := range []Format{Same, Auto} {
		d := newTest(t, format)
		trust := func(r Receipt, trust Trust) Receipt { r.Trust = trust; return r }
		d.record([]Segment{accepted(1, "a1"), accepted(2, "a2"), accepted(3, "a3"), unanswered(4, 7)})
		outcomes(t, d.record(nil,
			trust(receipt("a1", "DELIVRD", numberOf(1)), Checked), // its own
			trust(receipt("a2", "DELIVRD", numberOf(1)), Checked), // another handset's
			trust(receipt("a2", "DELIVRD", ""), Checked),          // no handset's
			trust(receipt("a3", "DELIVRD", numberOf(3)), Aside),
			trust(receipt("zz", "DELIVRD", numberOf(4)).echoing(7), Checked), // by a reference only
		), Matched, Unmatched, Unmatched, Unmatched, Unmatched)
		// Before the response, too.
		outcomes(t, d.record(nil,
			trust(receipt("b1", "DELIVRD", numberOf(11)), Checked), trust(receipt("b2", "DELIVRD", numberOf(11)), Checked),
			trust(receipt("b3", "DELIVRD", numberOf(13)), Aside)), Unmatched, Unmatched, Unmatched)
		settledAs(t, d.record([]Segment{accepted(11, "b1"), accepted(12, "b2"), accepted(13, "b3")}).Settled, sms.Sent, 11)
	}
}

// TestSeveralIDs: the ids of a receipt are tried in order, and an id without the number of a part last.
func TestSeveralIDs(t *testing.T) {
	d := newTest(t, Same)
	also := func(r Receipt, ids ...string) Receipt { r.Also = ids; return r }
	d.record([]Segment{accepted(1, "aaaa"), accepted(2, "bbbb"), accepted(3, "cccc"), accepted(4, "dddd", segment(1, 2)),
		accepted(5, `"0xEE01"`)})
	r := d.record(nil,
		also(receipt("zzzz", "DELIVRD", numberOf(1)), "aaaa"),
		also(receipt("yyyy", "DELIVRD", ""), "xxxx", "bbbb"),
		also(receipt("cccc", "DELIVRD", numberOf(3)), "aaaa"),
		receipt("dddd-1", "DELIVRD", numberOf(4)),
		receipt("dddd-2", "DELIVRD", ""), // nothing proves it
		receipt("ee01", "DELIVRD", numberOf(5)),
	)
	outcomes(t, r, Matched, Matched, Matched, Matched, Unmatched, Matched)
	settledAs(t, r.Settled, sms.Sent, 1, 2, 3, 4, 5)
}
