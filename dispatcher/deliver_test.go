package dispatcher

import (
	"testing"

	"intumwa/smpp"
)

// TestHandsetOfReceipt: whichever way around a carrier writes the addresses.
func TestHandsetOfReceipt(t *testing.T) {
	for _, c := range []struct{ source, dest, want string }{
		{"25761000001", "DEMO", "25761000001"},
		{"DEMO", "25761000001", "25761000001"},
		{"12345678901", "+25761000001", "+25761000001"}, // a sender of digits
		{"61000001", "DEMO", "61000001"},
		{"61000001", "8080", "61000001"},
		{"25761000001", "25779000001", "25761000001"},
		{"", "0025761000001", "0025761000001"},
		{"hidden", "DEMO", ""},
		{"25731123456", "25779000000", "25731123456"}, // a range that a carrier has opened
		{"+79123456", "DEMO", "+79123456"},
		{"079123456", "DEMO", "079123456"},
		{"99912345678", "DEMO", ""},
		{"61999999999", "DEMO", ""},
		{"2576100000", "DEMO", ""},
	} {
		if got := handset(c.source, c.dest); got != c.want {
			t.Errorf("from %q to %q: %q, want %q", c.source, c.dest, got, c.want)
		}
	}
}

// TestInboundAlphabet: a text from a handset in data_coding 0 is read in its
// carrier's alphabet, as ours are written; the other codings are the same with
// every carrier.
func TestInboundAlphabet(t *testing.T) {
	for _, c := range []struct {
		name     string
		alphabet Alphabet
		esm      uint8
		coding   uint8
		octets   string
		want     string
	}{
		{"GSM-7", AlphabetGSM7, 0, 0, "\x00\x05$\x1b\x65_", "@é¤€§"},
		{"Latin-1", AlphabetLatin1, 0, 0, "@\xe9$_", "@é$_"},
		{"ASCII", AlphabetASCII, 0, 0, "@$_{}", "@$_{}"},
		{"Latin-1 behind a UDH", AlphabetLatin1, 0x40, 0, "\x05\x00\x03\x01\x02\x01@\xe9", "@é"},
		{"data_coding 3 beside GSM-7", AlphabetGSM7, 0, 3, "@\xe9$_", "@é$_"},
		{"UCS-2 beside Latin-1", AlphabetLatin1, 0, 8, "\x00@\x20\xac", "@€"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &linkWorker{carrier: &carrier{name: "lumitel"}, link: "lumitel-1"}
			w.carrier.conf.Store(&Carrier{Alphabet: c.alphabet})
			m := w.inbound(&smpp.Delivery{ESMClass: c.esm, DataCoding: c.coding, ShortMessage: []byte(c.octets)})
			if m.Body == nil {
				t.Fatalf("%q was not read", c.octets)
			}
			if *m.Body != c.want {
				t.Errorf("%q is read as %q, want %q", c.octets, *m.Body, c.want)
			}
		})
	}
	w := &linkWorker{carrier: &carrier{}}
	w.carrier.conf.Store(&Carrier{})
	if m := w.inbound(&smpp.Delivery{ShortMessage: []byte("\xff")}); m.Body != nil || string(m.Octets) != "\xff" {
		t.Errorf("what is no GSM-7 was read; its octets are %q", m.Octets)
	}
}
