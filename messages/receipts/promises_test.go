package receipts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// TestPromises plays a carrier's responses and receipts in any order and grouping: two links whose ids collide, any
// format, configured or not; responses that are lost or late; receipts that echo a reference, are repeated, contradict
// each other, come over the other link, or find the inbox full. In every order,
//
//   - a segment is settled at most once;
//   - never by a receipt that names another handset, where it must agree;
//   - no receipt that names its handset is lost, in any format: each segment is settled in the end, and the receipts
//     left in the inbox are of segments that were settled before.
func TestPromises(t *testing.T) {
	d := newTest(t, Auto)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		g := &game{T: rt, d: d, carrier: fmt.Sprint("carrier", runs), settledBy: map[copyOf]string{}}
		g.setUp()
		for len(g.responses)+len(g.reports) > 0 {
			g.step()
		}
		g.judge()
	})
}

// game is one run.
type game struct {
	*rapid.T
	d *testMatcher
	*Matcher

	carrier                 string
	auto, numbered, crosses bool // how receipts come in this run
	format                  Format
	sent                    []Segment
	responses               []Segment
	reports                 []Receipt // to deliver; Error names each
	late                    map[int64]Segment

	settledBy map[copyOf]string // -> the receipt
}

// copyOf is a copy of a segment: a message with a late answer can have two.
type copyOf struct {
	message    int64
	unanswered bool
}

func yes(t *rapid.T, label string) bool { return rapid.Bool().Draw(t, label) }

func (g *game) setUp() {
	g.auto = yes(g.T, "any format is tried")
	g.numbered = g.auto || yes(g.T, "receipts name their handset")
	g.crosses = g.auto && yes(g.T, "receipts come over any link")
	g.late = map[int64]Segment{}
	g.format = rapid.SampledFrom([]Format{Same, HexToDecimal, DecimalToHex}).Draw(g.T, "format")
	g.Matcher = New(g.carrier, g.format)
	if g.auto {
		g.Matcher = New(g.carrier, Auto)
	}
	links := []string{"l1", "l2"}
	ids := map[string][]int{}
	for i, link := range links { // others are in another format
		if ids[link] = ids[links[0]]; i == 0 || !yes(g.T, "they count alike") {
			ids[link] = rapid.Permutation([]int{9, 10, 11, 16, 17, 22, 23, 31}).Draw(g.T, "ids")
		}
	}
	for message := range int64(rapid.IntRange(1, 7).Draw(g.T, "messages")) {
		link := rapid.SampledFrom(links).Draw(g.T, "link")
		id := ids[link][0]
		ids[link] = ids[link][1:]
		g.send(message+1, link, id)
	}
}

// send adds a message that the carrier accepts and reports.
func (g *game) send(message int64, link string, id int) {
	response, reported := strconv.Itoa(id), strconv.Itoa(id)
	switch g.format {
	case HexToDecimal:
		response = strings.ToUpper(strconv.FormatInt(int64(id), 16))
	case DecimalToHex:
		reported = "00" + strconv.FormatInt(int64(id), 16)
	}
	s := accepted(message, response, on(link))
	s.Reference = uint16(rapid.IntRange(1, 3).Draw(g.T, "reference"))
	echoes := false
	switch rapid.SampledFrom([]string{"answered", "answered", "answered", "nameless", "unanswered", "late"}).Draw(
		g.T, "response") {
	case "nameless":
		s.CarrierID, echoes = "", true
	case "unanswered":
		s.CarrierID, s.Unanswered, echoes = "", true, true
	case "late":
		late := s
		late.Late, late.Number = true, ""
		g.late[message] = late
		s.CarrierID, s.Unanswered = "", true
	}
	g.sent, g.responses = append(g.sent, s), append(g.responses, s)
	for n := range rapid.IntRange(1, 2).Draw(g.T, "receipts") {
		r := receipt(reported, rapid.SampledFrom([]string{"DELIVRD", "UNDELIV"}).Draw(g.T, "state"), "")
		r.Link, r.Error = link, fmt.Sprintf("%d.%d", message, n)
		if g.crosses && yes(g.T, "over the other link") {
			r.Link = map[string]string{"l1": "l2", "l2": "l1"}[link]
		}
		if g.numbered {
			r.Number = rapid.SampledFrom([]string{"+", "", "00"}).Draw(g.T, "prefix") + numberOf(message)
		}
		if echoes || yes(g.T, "echoes") {
			r = r.echoing(s.Reference)
		}
		g.reports = append(g.reports, r)
	}
}

// pick takes some elements of a list, in any order.
func pick[T any](t *rapid.T, list []T, what string) (some, rest []T) {
	list = rapid.Permutation(list).Draw(t, what)
	n := rapid.IntRange(0, min(len(list), 5)).Draw(t, "how many "+what)
	return list[:n:n], list[n:]
}

// step records some of the pending events in one transaction.
func (g *game) step() {
	var segments []Segment
	var reports []Receipt
	segments, g.responses = pick(g.T, g.responses, "responses")
	reports, g.reports = pick(g.T, g.reports, "reports")
	for _, s := range segments {
		late, is := g.late[s.MessageID]
		switch delete(g.late, s.MessageID); {
		case is && yes(g.T, "in one transaction"):
			segments = append(segments, late)
		case is:
			g.responses = append(g.responses, late)
		}
	}
	room := rapid.SampledFrom([]int{1000, 1000, 1}).Draw(g.T, "room")
	var r Recorded
	err := postgres.InTx(context.Background(), g.d.pool, func(tx pgx.Tx) (err error) {
		r, err = g.Record(context.Background(), tx, segments, reports, room)
		return err
	})
	if err != nil {
		g.Fatal(err)
	}
	g.note(r.Settled)
	for i, outcome := range r.Outcomes {
		if outcome == Throttled {
			g.reports = append(g.reports, reports[i]) // the carrier repeats it
		}
		if outcome == Matched && r.Whose[i] != messageOf(reports[i].Error) && g.numbered {
			g.Errorf("receipt %s settled message %d", reports[i].Error, r.Whose[i])
		}
	}
}

// messageOf returns a receipt's message.
func messageOf(receipt string) int64 {
	id, _, _ := strings.Cut(receipt, ".")
	n, _ := strconv.ParseInt(id, 10, 64)
	return n
}

// note checks the settled segments.
func (g *game) note(settled []SegmentState) {
	for _, st := range settled {
		one := copyOf{st.MessageID, st.Unanswered}
		if before, twice := g.settledBy[one]; twice {
			g.Errorf("%+v is settled by %s, after it was by %s", one, st.Error, before)
		}
		g.settledBy[one] = st.Error
		if g.numbered && messageOf(st.Error) != st.MessageID {
			g.Errorf("message %d is settled by receipt %s, of another handset", st.MessageID, st.Error)
		}
		if want := map[string]sms.Status{"DELIVRD": sms.Sent, "UNDELIV": sms.Failed}[st.Receipt]; st.Status != want {
			g.Errorf("message %d: %+v", st.MessageID, st)
		}
	}
}

// judge checks the final state.
func (g *game) judge() {
	if !g.numbered {
		return
	}
	for _, s := range g.sent {
		_, answered := g.settledBy[copyOf{s.MessageID, false}]
		_, unanswered := g.settledBy[copyOf{s.MessageID, true}]
		if !answered && !unanswered {
			g.Errorf("message %d (%+v) is not settled", s.MessageID, s)
		}
	}
}
