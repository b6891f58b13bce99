package sms_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	oracle "github.com/warthog618/sms"
	"pgregory.net/rapid"

	"intumwa/sms"
)

func TestGoldenVectors(t *testing.T) {
	for _, tc := range []struct {
		unit     string
		times    int
		encoding sms.Encoding
		segments int
	}{
		{"a", 160, sms.GSM7, 1}, {"a", 161, sms.GSM7, 2}, {"a", 306, sms.GSM7, 2}, {"a", 307, sms.GSM7, 3},
		{"a", 600, sms.GSM7, 4},
		{"€", 80, sms.GSM7, 1}, {"€", 81, sms.GSM7, 2}, {"€", 152, sms.GSM7, 2}, {"€", 153, sms.GSM7, 3},
		{"€", 600, sms.GSM7, 8},
		{"ê", 70, sms.UCS2, 1}, {"ê", 71, sms.UCS2, 2}, {"ê", 134, sms.UCS2, 2}, {"ê", 135, sms.UCS2, 3},
		{"ê", 600, sms.UCS2, 9},
		{"😀", 35, sms.UCS2, 1}, {"😀", 36, sms.UCS2, 2}, {"😀", 66, sms.UCS2, 2}, {"😀", 67, sms.UCS2, 3},
		{"😀", 600, sms.UCS2, 19},
		{"", 1, sms.GSM7, 0}, {"\f", 81, sms.GSM7, 2},
	} {
		text := strings.Repeat(tc.unit, tc.times)
		encoding, segments := sms.Count(text)
		if encoding != tc.encoding || segments != tc.segments {
			t.Errorf("Count(%q x %d) = %v %d, want %v %d", tc.unit, tc.times, encoding, segments, tc.encoding, tc.segments)
		}
		checkSplit(t, text)
	}
	if _, n := sms.Count("a" + strings.Repeat("€", 152)); n != 2 {
		t.Errorf("a and 152 euro signs take %d segments, want 2: 153 and 152 septets", n)
	}
}

func TestAlphabet(t *testing.T) {
	const all = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ " +
		"!\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà\f^{}\\[~]|€"
	if n := utf8.RuneCountInString(all); n != 137 {
		t.Fatalf("the test's own alphabet has %d characters, want 127 and 10", n)
	}
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		want := sms.UCS2
		if strings.ContainsRune(all, r) {
			want = sms.GSM7
		}
		if got := sms.Measure(string(r)).Encoding; got != want {
			t.Fatalf("U+%04X is %v, want %v", r, got, want)
		}
	}
	for _, r := range "çêâîôûëïœ’\u00a0\x1b\x00\t`" {
		if encoding, _ := sms.Count(string(r)); encoding != sms.UCS2 {
			t.Errorf("U+%04X is %v, want ucs2", r, encoding)
		}
	}
	_, payload := sms.Encode("@Ç\f{€à")
	if want := []byte{0x00, 0x09, 0x1B, 0x0A, 0x1B, 0x28, 0x1B, 0x65, 0x7F}; !bytes.Equal(payload, want) {
		t.Errorf("septets % X, want % X", payload, want)
	}
}

func TestMeasure(t *testing.T) {
	for text, want := range map[string]sms.Size{
		"":      {},
		"a€":    {Encoding: sms.GSM7, Characters: 2, Units: 3, Segments: 1},
		"ê😀":    {Encoding: sms.UCS2, Characters: 2, Units: 3, Segments: 1},
		"\xff ": {Encoding: sms.UCS2, Characters: 2, Units: 2, Segments: 1},
	} {
		if got := sms.Measure(text); got != want {
			t.Errorf("Measure(%q) = %+v, want %+v", text, got, want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { sms.Count("Ikaze ê") }); n != 0 {
		t.Errorf("Count allocates %v times", n)
	}
	if sms.GSM7.DataCoding() != 0 || sms.UCS2.DataCoding() != 8 || sms.GSM7.String() != "gsm7" ||
		sms.UCS2.String() != "ucs2" {
		t.Error("the encodings' names or codes have changed")
	}
}

func TestUnicodeCharacters(t *testing.T) {
	got := strings.Join(sms.UnicodeCharacters("l’été ça «va»? ça 😀 va’"), " ")
	if want := "’ ç « » 😀"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if found := sms.UnicodeCharacters("L'été {à} 5 €"); found != nil {
		t.Errorf("GSM-7 text has Unicode characters %q", found)
	}
}

// cutText cuts a text as the dispatcher does.
func cutText(text string, wide bool) sms.Split {
	encoding, payload := sms.Encode(text)
	return sms.SplitEncoded(encoding, payload, wide)
}

func TestWideSplit(t *testing.T) {
	for text, want := range map[string]int{
		strings.Repeat("a", 160): 1, strings.Repeat("a", 304): 2, strings.Repeat("a", 305): 3,
		strings.Repeat("ê", 70): 1, strings.Repeat("ê", 132): 2, strings.Repeat("ê", 133): 3,
		strings.Repeat("a", 151) + "€" + strings.Repeat("a", 151): 3,
	} {
		split := cutText(text, true)
		if len(split.Segments) != want {
			t.Errorf("%d characters: %d segments, want %d", utf8.RuneCountInString(text), len(split.Segments), want)
		}
		if joined, ok := sms.Decode(split.Encoding.DataCoding(), sms.DefaultGSM7, split.Segments...); !ok || joined != text {
			t.Errorf("joined %q", joined)
		}
	}
}

// checkSplit checks all promises of a split.
func checkSplit(t testing.TB, text string) {
	t.Helper()
	encoding, segments := sms.Count(text)
	split := cutText(text, false)
	if split.Encoding != encoding || len(split.Segments) != segments {
		t.Fatalf("cutText(%q): %v in %d segments, Count returns %v in %d", text, split.Encoding, len(split.Segments),
			encoding, segments)
	}
	single, part := 160, 153
	if encoding == sms.UCS2 {
		single, part = 140, 134
	}
	units := 0
	for i, segment := range split.Segments {
		limit := part
		if segments == 1 {
			limit = single
		}
		if len(segment) == 0 || len(segment) > limit || cap(segment) != len(segment) {
			t.Fatalf("cutText(%q): segment %d has %d bytes (capacity %d), limit %d", text, i+1, len(segment), cap(segment),
				limit)
		}
		// Greedy: the next character would not have fitted.
		if i+1 < segments && len(segment) < limit-2 {
			t.Fatalf("cutText(%q): segment %d has only %d bytes of %d", text, i+1, len(segment), limit)
		}
		units += len(segment)
	}
	if encoding == sms.UCS2 {
		units /= 2
	}
	if size := sms.Measure(text); size.Units != units || size.Characters != utf8.RuneCountInString(text) {
		t.Fatalf("Measure(%q) = %+v, segments hold %d units", text, size, units)
	}
	joined, ok := sms.Decode(split.Encoding.DataCoding(), sms.DefaultGSM7, split.Segments...)
	if want := string([]rune(text)); !ok || joined != want {
		t.Fatalf("cutText(%q) is read as %q", text, joined)
	}
}

// bodies generates texts around the limits.
func bodies() *rapid.Generator[string] {
	alphabet := []rune("aaaaaaa€{}Δé\f\n")
	wide := append([]rune("ê’ж中😀😀🇧"), alphabet...)
	return rapid.OneOf(
		rapid.StringOfN(rapid.SampledFrom(alphabet), 0, 700, -1),
		rapid.StringOfN(rapid.SampledFrom(wide), 0, 700, -1),
		rapid.StringN(0, 300, -1),
	)
}

func TestSplitProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { checkSplit(t, bodies().Draw(rt, "text")) })
}

// TestSplitAgreesWithOracle compares with warthog618/sms, except where that is wrong: U+001B, which it passes through
// as an escape, and more than 255 segments, where its counter wraps.
func TestSplitAgreesWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ReplaceAll(strings.ToValidUTF8(bodies().Draw(t, "text"), ""), "\x1b", "")
		if text == "" {
			return
		}
		theirs, err := oracle.Encode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		ours := cutText(text, false)
		if len(theirs) != len(ours.Segments) {
			t.Fatalf("%d segments, the oracle has %d", len(ours.Segments), len(theirs))
		}
		for i := range theirs {
			if want := []byte(theirs[i].UD); !bytes.Equal(ours.Segments[i], want) {
				t.Fatalf("segment %d is % X, the oracle has % X", i+1, ours.Segments[i], want)
			}
		}
	})
}

func TestUCS2IsUTF16BE(t *testing.T) {
	const text = "Murakoze ’😀’ 中"
	_, payload := sms.Encode(text)
	units := utf16.Encode([]rune(text))
	for i, unit := range units {
		if payload[2*i] != byte(unit>>8) || payload[2*i+1] != byte(unit) {
			t.Fatalf("code unit %d is % X, want %04X", i, payload[2*i:2*i+2], unit)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"", "Amakuru", strings.Repeat("€", 153), strings.Repeat("😀", 67), "a\x1beb", "\xff\xfe",
		strings.Repeat("a", 152) + "{" + strings.Repeat("a", 160)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { checkSplit(t, text) })
}

func BenchmarkCount(b *testing.B) {
	for name, text := range samples() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sms.Count(text)
			}
		})
	}
}

func BenchmarkSplit(b *testing.B) {
	for name, text := range samples() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cutText(text, false)
			}
		})
	}
}

func samples() map[string]string {
	return map[string]string{
		"gsm7-160": strings.Repeat("Amakuru ", 20),
		"gsm7-600": strings.Repeat("Amakuru, é€ ", 50),
		"ucs2-70":  strings.Repeat("amakurê", 10),
		"ucs2-600": strings.Repeat("amakurê 😀,", 60),
	}
}
