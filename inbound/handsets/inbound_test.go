package handsets_test

import (
	"slices"
	"testing"
	"time"

	"intumwa/inbound/handsets"
)

// TestInbound: MOs are stored as received, listed latest first, and deleted after their retention.
func TestInbound(t *testing.T) {
	d := newTestStore(t)
	text := "STOP\x00"
	d.keep(
		handsets.Inbound{At: time.Now().Add(-2 * time.Hour), Source: "25761000001", Destination: "8080", Octets: []byte("old")},
		handsets.Inbound{Source: "25761000002", Destination: "8080", Body: &text, Octets: []byte(text), Part: &handsets.Part{Reference: 7, Total: 3, Number: 2}},
	)
	kept, err := d.Inbounds(t.Context(), 0, 10)
	if err != nil || len(kept) != 2 || kept[0].Source != "25761000002" || *kept[0].Body != "STOP" || string(kept[0].Octets) != text || kept[1].Body != nil ||
		kept[1].Part != nil || *kept[0].Part != (handsets.Part{Reference: 7, Total: 3, Number: 2}) || kept[0].Outcome != "" {
		t.Fatalf("%+v, %v", kept, err)
	}
	fresh, err := d.Fresh(t.Context(), 10, []string{"25761000001"})
	if err != nil || len(fresh) != 1 || fresh[0].ID != kept[0].ID {
		t.Errorf("without one handset: %+v, %v", fresh, err)
	}
	if err := d.Mark(t.Context(), handsets.Waiting, 0, kept[0].ID); err != nil {
		t.Fatal(err)
	}
	if fresh, err = d.Fresh(t.Context(), 10, []string{}); err != nil || len(fresh) != 1 || fresh[0].ID != kept[1].ID {
		t.Errorf("left to look at: %+v, %v", fresh, err)
	}
	if late, err := d.Overdue(t.Context(), time.Hour, 10); err != nil || len(late) != 0 {
		t.Errorf("overdue: %+v, %v", late, err)
	}
	if since, err := d.Waits(t.Context()); err != nil || time.Since(since) < time.Hour {
		t.Errorf("waits since %v, %v", since, err)
	}
	if n, err := d.Forget(t.Context(), time.Hour); err != nil || n != 1 {
		t.Errorf("%d forgotten, %v", n, err)
	}
	if kept, err = d.Inbounds(t.Context(), 0, 10); err != nil || len(kept) != 1 || kept[0].Source != "25761000002" {
		t.Errorf("left: %+v, %v", kept, err)
	}
}

// TestRepeats: only the same bytes from the same handset to the same address are a repetition, and only within the
// window.
func TestRepeats(t *testing.T) {
	d := newTestStore(t)
	now := time.Now().Truncate(time.Second)
	one := func(at time.Duration, source, to, text string) handsets.Inbound {
		return handsets.Inbound{At: now.Add(at), Source: source, Destination: to, Body: &text, Octets: []byte(text)}
	}
	d.keep(one(0, "25761000001", "8080", "Yego"), one(time.Minute, "25761000001", "8080", "Yego"), one(time.Minute, "25761000001", "8080", "Oya"),
		one(time.Minute, "25761000002", "8080", "Yego"), one(time.Minute, "25761000001", "9090", "Yego"), one(3*time.Minute, "25761000001", "8080", "Yego"))
	all, err := d.Fresh(t.Context(), 10, []string{})
	if err != nil {
		t.Fatal(err)
	}
	var repeats []bool
	for i := range all {
		is, err := d.Repeats(t.Context(), &all[i], 2*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		outcome := handsets.Unrouted
		if is {
			outcome = handsets.Duplicate
		}
		if err := d.Mark(t.Context(), outcome, 0, all[i].ID); err != nil {
			t.Fatal(err)
		}
		repeats = append(repeats, is)
	}
	if want := []bool{false, true, false, false, false, false}; !slices.Equal(repeats, want) {
		t.Errorf("repetitions are %v, want %v", repeats, want)
	}
}

// TestReplies: the acknowledgements to one handset are limited.
func TestReplies(t *testing.T) {
	d := newTestStore(t)
	for range 4 {
		d.keep(handsets.Inbound{Source: "25761000001", Destination: "8080"})
	}
	all, err := d.Fresh(t.Context(), 10, []string{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range all {
		room, err := d.Reply(t.Context(), &all[i], 2, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if room {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d acknowledgements, want 2", n)
	}
}
