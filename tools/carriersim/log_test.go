package carriersim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestReassembly puts segments together whatever their order and reference.
func TestReassembly(t *testing.T) {
	c, addr := serve(t, Options{Seed: 1, NoReceipts: true})
	k := bound(t, addr)
	segment := func(ref, total, seq byte, text string) {
		m := usual("25779000000", "\x05\x00\x03"+string([]byte{ref, total, seq})+text)
		m.esm = 0x40
		k.submit(m)
	}
	segment(1, 2, 1, "one ")
	segment(2, 2, 2, "four")
	segment(1, 2, 2, "two")
	segment(1, 2, 2, "two") // again, octet for octet
	segment(2, 2, 1, "three ")
	segment(1, 2, 1, "the reference came round")
	emoji := usual("25779000000", "\x06\x08\x04\x12\x34\x01\x01\xd8\x3d\xde\x00")
	emoji.esm, emoji.coding = 0x40, 8
	k.submit(emoji)
	payload := usual("25779000000", "")
	payload.tlvs = "\x04\x24\x01\x2c" + strings.Repeat("p", 300)
	k.submit(payload)
	sar := usual("25779000000", "sar")
	sar.tlvs = "\x02\x0c\x00\x02\x00\x07\x02\x0e\x00\x01\x01\x02\x0f\x00\x01\x01" + umr
	k.submit(sar)
	k.submit(usual("25779000000", "single"))
	k.submit(usual("25779000000", "single"))
	for range 11 {
		says(t, k, "resp ESME_ROK")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	messages, err := c.AwaitMessages(ctx, 7)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range messages {
		text := m.Text
		if len(text) > 30 {
			text = text[:3] + "…"
		}
		got = append(got, fmt.Sprintf("%s/%d of %d/%v/%d", text, m.Received, m.Segments, m.InOrder, m.Duplicates))
	}
	want := []string{
		"one two/2 of 2/true/1", "three four/2 of 2/false/0", "the reference came round/1 of 2/true/0",
		"😀/1 of 1/true/0", "ppp…/1 of 1/true/0", "sar/1 of 1/true/0", "single/1 of 1/true/0", "single/1 of 1/true/0",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if m := messages[0]; !m.Complete || len(m.IDs) != 2 || m.IDs[0] == "" || m.IDs[0] == m.IDs[1] || m.Encoding != "gsm7" || m.Source != "DEMO" {
		t.Errorf("%+v", m)
	}
	submits := c.Submits()
	last := submits[8]
	if len(submits) != 11 || last.Concat == nil || *last.Concat != (Concat{7, 1, 1, "sar"}) || len(last.TLVs) != 4 || last.Session != 1 || last.Sequence != 10 {
		t.Errorf("%d submits, %+v", len(submits), last)
	}
	if n := c.Stats().Duplicates; n != 2 {
		t.Errorf("%d duplicates", n)
	}
	if n := len(c.SubmitsSince(9)); n != 2 {
		t.Errorf("%d submits since the ninth", n)
	}
	if v := c.Violations(); len(v) > 0 {
		t.Errorf("%+v", v)
	}
	c.Reset()
	if len(c.Messages())+len(c.Submits()) != 0 || c.Stats().Submits != 0 || c.Stats().Sessions != 1 {
		t.Errorf("after Reset: %+v", c.Stats())
	}
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.AwaitMessages(ctx, 1); err == nil {
		t.Error("waited for nothing")
	}
}

// TestLogIsBounded: old submits and messages give way to new ones.
func TestLogIsBounded(t *testing.T) {
	c := New(Options{MaxLog: 8, Seed: 1})
	s := newSession(c, nil, 1)
	for i := range 100 {
		c.log.add(int64(i), s, uint32(i), verdict{accepted: true, script: defaultScript}, nil, true, usual("25779000000", fmt.Sprint(i)).body(), uint64(i))
		if i%3 == 0 {
			c.Messages()
		}
	}
	list := c.Messages()
	if len(list) > 10 || list[len(list)-1].Text != "99" || len(c.log.known) != 8 || len(c.log.entries) != 8 {
		t.Errorf("%d messages, %d known, %d entries", len(list), len(c.log.known), len(c.log.entries))
	}
	if submits := c.Submits(); len(submits) != 8 || submits[0].Text != "92" {
		t.Errorf("%d submits", len(submits))
	}
}
