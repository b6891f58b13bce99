package handsets_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"intumwa/inbound/handsets"
	"intumwa/sms"
)

func part(id int64, number, total int, text string) handsets.Inbound {
	return handsets.Inbound{ID: id, Body: &text, Octets: []byte(text), Outcome: handsets.Waiting,
		Part: &handsets.Part{Reference: 7, Total: total, Number: number}}
}

// TestAssemble: each combination of a part and earlier ones has its result.
func TestAssemble(t *testing.T) {
	over := func(m handsets.Inbound) handsets.Inbound { m.Outcome = handsets.Routed; return m }
	now := time.Now()
	answered := func(m handsets.Inbound) handsets.Inbound { // a minute ago, at once
		m.At, m.AnsweredAt = now.Add(-time.Minute), now.Add(-time.Minute+time.Millisecond)
		return over(m)
	}
	came := func(m handsets.Inbound, bound time.Duration) handsets.Inbound {
		m.At, m.BoundAt = now, now.Add(bound)
		return m
	}
	for name, c := range map[string]struct {
		m        handsets.Inbound
		earlier  []handsets.Inbound
		repeated bool
		whole    []int64
		given    []int64
	}{
		"the first":  {m: part(1, 1, 3, "a")},
		"the second": {m: part(2, 3, 3, "c"), earlier: []handsets.Inbound{part(1, 1, 3, "a")}},
		"the last, out of order": {m: part(3, 2, 3, "b"),
			earlier: []handsets.Inbound{part(1, 3, 3, "c"), part(2, 1, 3, "a")}, whole: []int64{2, 3, 1}},
		"once more while others wait": {m: part(2, 1, 3, "a"), earlier: []handsets.Inbound{part(1, 1, 3, "a")},
			repeated: true},
		"once more when all is over": {m: part(3, 1, 2, "a"),
			earlier: []handsets.Inbound{over(part(1, 1, 2, "a")), over(part(2, 2, 2, "b"))}, repeated: true},
		"again after the answer": {m: came(part(3, 1, 2, "a"), -time.Hour),
			earlier: []handsets.Inbound{answered(part(1, 1, 2, "a")), answered(part(2, 2, 2, "b"))}},
		"again after a reconnect": {m: came(part(3, 1, 2, "a"), -time.Second),
			earlier: []handsets.Inbound{answered(part(1, 1, 2, "a")), answered(part(2, 2, 2, "b"))}, repeated: true},
		"another message under the ref": {m: part(2, 1, 2, "x"), earlier: []handsets.Inbound{part(1, 1, 2, "a")},
			given: []int64{1}},
		"another after one was over": {m: part(3, 1, 2, "x"),
			earlier: []handsets.Inbound{over(part(1, 1, 2, "a")), over(part(2, 2, 2, "b"))}},
	} {
		t.Run(name, func(t *testing.T) {
			a, repeats := handsets.Assemble(c.m, c.earlier)
			idsOf := func(parts []handsets.Inbound) (ids []int64) {
				for _, p := range parts {
					ids = append(ids, p.ID)
				}
				return ids
			}
			if whole, given := idsOf(a.Whole), idsOf(a.Given); (repeats == handsets.Repeated) != c.repeated ||
				!slices.Equal(whole, c.whole) || !slices.Equal(given, c.given) {
				t.Errorf("%+v, whole %v, given up %v", a, whole, given)
			}
		})
	}
}

// TestAssembleInAnyOrder: parts in any order and with repetitions make one message with the original text.
func TestAssembleInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(2, handsets.MaxParts).Draw(t, "total")
		var texts []string
		for i := range total {
			texts = append(texts, rapid.StringMatching("[a-z]{1,5}").Draw(t, "text")+string(rune('A'+i)))
		}
		order := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
			for i := range total {
				for range rapid.IntRange(1, 3).Draw(t, "copies") {
					if !yield(i) {
						return
					}
				}
			}
		})).Draw(t, "order")
		var earlier []handsets.Inbound
		came := 0
		for id, i := range order {
			m := part(int64(id+1), i+1, total, texts[i])
			a, repeats := handsets.Assemble(m, earlier)
			switch {
			case repeats == handsets.Repeated:
				continue
			case a.Whole != nil:
				came++
				if text := handsets.Text(a.Whole); text == nil || *text != strings.Join(texts, "") {
					t.Fatalf("it reads %v, want %q", text, texts)
				}
				for j := range earlier {
					earlier[j].Outcome = handsets.Routed
				}
				m.Outcome = handsets.Routed
			case len(a.Given) > 0:
				t.Fatal("parts of one message were given up")
			}
			earlier = append(earlier, m)
		}
		if came != 1 {
			t.Fatalf("it came %d times", came)
		}
	})
}

// TestText: a surrogate pair that a handset cut in two is decoded, in each coding of UCS-2. A part that cannot be
// decoded does not affect the others.
func TestText(t *testing.T) {
	ucs := func(number int, coding uint8, payload string) handsets.Inbound {
		m := part(int64(number), number, 2, payload)
		m.DataCoding, m.ESMClass, m.Octets = coding, 0x40, []byte("\x05\x00\x03\x07\x02"+string(rune(number))+payload)
		return m
	}
	cut := func(number int, coding uint8, payload string) handsets.Inbound { // as the dispatcher stores it
		m := ucs(number, coding, payload)
		text, _ := sms.Decode(coding, sms.DefaultGSM7, []byte(payload))
		m.Body = &text
		return m
	}
	binary := part(1, 1, 2, "")
	binary.Body = nil
	for name, c := range map[string]struct {
		parts []handsets.Inbound
		want  string
	}{
		"a cut surrogate pair":   {[]handsets.Inbound{ucs(1, 8, "\x00H\xd8\x3d"), ucs(2, 8, "\xde\x00\x00!")}, "H😀!"},
		"the same with a class":  {[]handsets.Inbound{ucs(1, 0x18, "\x00H\xd8\x3d"), ucs(2, 0x18, "\xde\x00\x00!")}, "H😀!"},
		"half a code unit":       {[]handsets.Inbound{ucs(1, 8, "\x00H\xd8"), ucs(2, 8, "\x00!")}, "H\ufffd!"},
		"a cut letter in UTF-8":  {[]handsets.Inbound{cut(1, 0, "Hél\xc3"), cut(2, 0, "\xa8ne @")}, "Hélène @"},
		"the same in Latin-1":    {[]handsets.Inbound{cut(1, 3, "H\xc3"), cut(2, 3, "\xa8")}, "HÃ¨"},
		"a part that is no text": {[]handsets.Inbound{binary, part(2, 2, 2, "b")}, "\ufffdb"},
	} {
		if text := handsets.Text(c.parts); text == nil || *text != c.want {
			t.Errorf("%s: %v, want %q", name, text, c.want)
		}
	}
	if text := handsets.Text([]handsets.Inbound{binary, binary}); text != nil {
		t.Errorf("no text at all is %q", *text)
	}
}
