package profile

import (
	"testing"

	"intumwa/smpp"
)

// TestSourceByKind: a sender's TON and NPI follow its kind (SMPP 3.4, 5.2.5; GSMA short codes as network specific). An
// SMSC refuses a number that is called alphanumeric, or shows it with a wrong prefix.
func TestSourceByKind(t *testing.T) {
	kinds := Profile{Source: Sources{Alphanumeric: TONNPI{5, 0}, Short: TONNPI{3, 0}, International: TONNPI{1, 1}}}
	for _, c := range []struct {
		sender, wire string
		want         TONNPI
	}{
		{"ACME", "ACME", TONNPI{5, 0}},
		{"A1", "A1", TONNPI{5, 0}},
		{"8080A", "8080A", TONNPI{5, 0}},
		{"80 80", "80 80", TONNPI{5, 0}},
		{"8080", "8080", TONNPI{3, 0}},
		{"123", "123", TONNPI{3, 0}},
		{"79000000", "79000000", TONNPI{3, 0}}, // no country's code: with TON 1 a handset would show +79…, another country
		{"25779000000", "25779000000", TONNPI{1, 1}},
		{"+25779000000", "25779000000", TONNPI{1, 1}}, // E.164 digits: the + is not on the wire
		{"+", "+", TONNPI{5, 0}},
		{"", "", TONNPI{5, 0}},
	} {
		m := claimed("Amahoro")
		m.Sender = c.sender
		got := kinds.Segments(m, noon)[0]
		if got.Source != c.wire || (TONNPI{got.SourceTON, got.SourceNPI}) != c.want {
			t.Errorf("%q goes out as %q %d/%d, want %q %v", c.sender, got.Source, got.SourceTON, got.SourceNPI, c.wire, c.want)
		}
	}
}

// TestDestForm: the forms of a recipient that carriers ask for.
func TestDestForm(t *testing.T) {
	for form, want := range map[DestForm]string{DestInternational: "25779123456", DestPlus: "+25779123456",
		DestZeros:    "0025779123456",
		DestNational: "79123456", DestTrunk: "079123456"} {
		p := Profile{DestForm: form}
		if got := p.Segments(claimed("Amahoro"), noon)[0].Dest; got != want {
			t.Errorf("form %d: %q, want %q", form, got, want)
		}
	}
}

// TestCoding: data_coding, message class, priority and registered_delivery as a carrier wants them.
func TestCoding(t *testing.T) {
	class := func(n uint8) *uint8 { return &n }
	for _, c := range []struct {
		name     string
		p        Profile
		gsm, ucs uint8
	}{
		{"defaults", Profile{}, 0, 8},
		{"Latin-1 marked as such", Profile{Alphabet: AlphabetLatin1, DefaultCoding: 3}, 3, 8},
		{"another UCS-2", Profile{UCS2Coding: 0x18}, 0, 0x18},
		{"class 0", Profile{MessageClass: class(0)}, 0x10, 0x18}, // 3GPP TS 23.038, section 4: 0001 xxcc
		{"class 2", Profile{MessageClass: class(2)}, 0x12, 0x1A},
	} {
		gsm, ucs := c.p.Segments(claimed("Amahoro"), noon)[0], c.p.Segments(claimed("Amahoro ô"), noon)[0]
		if gsm.DataCoding != c.gsm || ucs.DataCoding != c.ucs {
			t.Errorf("%s: data_coding %#x and %#x, want %#x and %#x", c.name, gsm.DataCoding, ucs.DataCoding, c.gsm, c.ucs)
		}
	}
	p := Profile{SinglePriority: 2, RegisteredDelivery: class(0)}
	single, batch := claimed("Amahoro"), claimed("Amahoro")
	single.Single = true
	priorities := [2]smpp.Submit{p.Segments(single, noon)[0], p.Segments(batch, noon)[0]}
	if priorities[0].Priority != 2 || priorities[1].Priority != 0 || priorities[1].RegisteredDelivery != 0 {
		t.Errorf("%+v", priorities)
	}
}
