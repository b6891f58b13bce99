package handsets_test

import (
	"cmp"
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
		handsets.Inbound{At: time.Now().Add(-2 * time.Hour), Source: "25761000001", Destination: "8080",
			Octets: []byte("old")},
		handsets.Inbound{Source: "25761000002", Destination: "8080", Body: &text, Octets: []byte(text),
			Part: &handsets.Part{Reference: 7, Total: 3, Number: 2}},
	)
	kept, err := d.Fresh(t.Context(), 10, []string{})
	slices.Reverse(kept)
	if err != nil || len(kept) != 2 || kept[0].Source != "25761000002" || *kept[0].Body != "STOP" ||
		string(kept[0].Octets) != text || kept[1].Body != nil ||
		kept[1].Part != nil || *kept[0].Part != (handsets.Part{Reference: 7, Total: 3, Number: 2}) || kept[0].Outcome != "" {
		t.Fatalf("%+v, %v", kept, err)
	}
	if shown, err := d.Inbounds(t.Context(), 0, 10); err != nil || len(shown) != 2 || shown[0].ID != kept[0].ID ||
		shown[0].Body != nil || string(shown[0].Octets) != "\x00\x00\x00\x00\x00" {
		t.Errorf("shown to operators: %+v, %v", shown, err)
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

// TestRepeats: only the same bytes from the same handset to the same address are a repetition, within the window, and
// only if the carrier had no answer when it delivered them again, or bound again and names the same reference.
func TestRepeats(t *testing.T) {
	const never = 0
	type came struct {
		at, answered time.Duration // answered is after at
		bound        time.Duration
		to, text     string
		reference    uint16
	}
	for _, c := range []struct {
		name          string
		first, second came
		want          handsets.Repetition
	}{
		{"not answered", came{}, came{at: time.Minute}, handsets.Repeated},
		{"not answered, too late", came{}, came{at: 3 * time.Minute}, handsets.Original},
		{"not answered, another text", came{}, came{at: time.Minute, text: "Oya"}, handsets.Original},
		{"not answered, another address", came{}, came{at: time.Minute, to: "9090"}, handsets.Original},
		{"answered before", came{answered: time.Second}, came{at: 2 * time.Second}, handsets.Original},
		{"answered at that moment", came{answered: time.Second}, came{at: time.Second}, handsets.Original},
		{"answered after it came again", came{answered: 2 * time.Second}, came{at: time.Second}, handsets.Repeated},
		{"over two links at once", came{answered: time.Second}, came{answered: time.Second}, handsets.Repeated},
		{"answered, again after a reconnect", came{answered: time.Second}, came{at: time.Minute, bound: 30 * time.Second},
			handsets.Original},
		{"the same reference after a reconnect", came{answered: time.Second, reference: 7},
			came{at: time.Minute, bound: 30 * time.Second, reference: 7}, handsets.Repeated},
		{"another reference after a reconnect", came{answered: time.Second, reference: 7},
			came{at: time.Minute, bound: 30 * time.Second, reference: 8}, handsets.Original},
		{"the same reference on one session", came{answered: time.Second, reference: 7},
			came{at: time.Minute, bound: -time.Hour, reference: 7}, handsets.Original},
		{"the earlier one came later, after the answer", came{at: time.Minute, answered: time.Second},
			came{answered: time.Second}, handsets.Original},
		{"the answer may be on its way", came{at: time.Hour}, came{at: time.Hour + time.Second}, handsets.Unknown},
		{"it may be, but it is another text", came{at: time.Hour}, came{at: time.Hour + time.Second, text: "Oya"},
			handsets.Original},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newTestStore(t)
			now := time.Now().Truncate(time.Second).Add(-time.Hour)
			var all []handsets.Inbound
			for _, one := range []came{c.first, c.second} {
				text := cmp.Or(one.text, "1")
				m := handsets.Inbound{At: now.Add(one.at), Link: "l1", Source: "25761000001", Destination: cmp.Or(one.to, "8080"),
					Body: &text, Octets: []byte(text), BoundAt: now.Add(-time.Hour)}
				if one.bound != never {
					m.BoundAt = now.Add(one.bound)
				}
				if one.reference != 0 {
					m.Reference = &one.reference
				}
				d.keep(m)
				kept, err := d.Fresh(t.Context(), 10, []string{})
				if err != nil {
					t.Fatal(err)
				}
				if one.answered != never {
					if left, err := d.Answered(t.Context(), []handsets.Answer{{ID: kept[len(kept)-1].ID, At: m.At.Add(one.answered)},
						{ID: 99, At: now}}); err != nil || len(left) != 0 {
						t.Fatalf("%v are left, %v", left, err)
					}
				}
				kept, _ = d.Fresh(t.Context(), 10, []string{})
				all = append(all, kept[len(kept)-1])
			}
			if err := d.Mark(t.Context(), handsets.Unrouted, 0, all[0].ID); err != nil {
				t.Fatal(err)
			}
			if got, err := d.Repeats(t.Context(), &all[1], 2*time.Minute); err != nil || got != c.want {
				t.Errorf("%v, %v, want %v", got, err, c.want)
			}
		})
	}
}

// TestAnswerOfALockedRow: an answer to a message that is being routed is left for later.
func TestAnswerOfALockedRow(t *testing.T) {
	d := newTestStore(t)
	d.keep(handsets.Inbound{Source: "25761000001", Destination: "8080"},
		handsets.Inbound{Source: "25761000002", Destination: "8080"})
	all, err := d.Fresh(t.Context(), 10, []string{})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := d.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.In(tx).Mark(t.Context(), handsets.Routed, 0, all[0].ID); err != nil {
		t.Fatal(err)
	}
	answers := []handsets.Answer{{ID: all[0].ID, At: time.Now()}, {ID: all[1].ID, At: time.Now()}}
	left, err := d.Answered(t.Context(), answers)
	if err != nil || len(left) != 1 || left[0].ID != all[0].ID {
		t.Fatalf("%+v, %v", left, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err = d.Answered(t.Context(), left); err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
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
