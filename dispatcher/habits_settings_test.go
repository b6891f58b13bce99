package dispatcher_test

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/smpp"
	"intumwa/tools/carriersim"
)

// TestHabitsOfLongMessages: how a carrier wants segments marked and what it
// takes data_coding 0 for. Whatever it is, the handset shows the text that was
// sent.
//
// Source: rule carriers 8.1, 8.2.
func TestHabitsOfLongMessages(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"short":           "Muraho",
		"160 septets":     strings.Repeat("a", 160),
		"161 septets":     strings.Repeat("a", 161),
		"escapes":         strings.Repeat("€", 153),
		"an odd escape":   "a" + strings.Repeat("{", 152),
		"accents":         "@£$¥èéùìòÇ ÄÖÑÜ§¿äöñüà ΔΦΓΛΩΠΨΣΘΞ []{}~\\|^€_",
		"latin only":      "@£$¥èéùìòÇ ÄÖÑÜ§¿äöñüà " + strings.Repeat("Bonjour à vous ", 20),
		"UCS-2":           "Ça coûte très cher: ê â î ô û ë ï œ",
		"UCS-2 long":      strings.Repeat("ê", 135),
		"surrogate pairs": strings.Repeat("😀", 67),
		"600 characters":  strings.Repeat("0123456789", 60),
		"600 emoji":       strings.Repeat("😀", 600),
	}
	concats := map[string]dispatcher.Concat{"udh8": dispatcher.ConcatUDH8, "udh16": dispatcher.ConcatUDH16, "sar": dispatcher.ConcatSAR, "payload": dispatcher.ConcatPayload}
	alphabets := map[string]struct {
		ours   dispatcher.Alphabet
		theirs carriersim.Alphabet
	}{"gsm7": {dispatcher.AlphabetGSM7, carriersim.GSM7}, "latin1": {dispatcher.AlphabetLatin1, carriersim.Latin1}, "ascii": {dispatcher.AlphabetASCII, carriersim.ASCII}}
	w := newWorld(t)
	var carriers []dispatcher.Carrier
	sims := map[string]*sim{}
	for concat, how := range concats {
		for alphabet, what := range alphabets {
			name := concat + "-" + alphabet
			sims[name] = w.carrier(carriersim.Options{Name: name, NoFates: true, Alphabet: what.theirs})
			carriers = append(carriers, named(name, sims[name], func(c *dispatcher.Carrier) { c.Concat, c.Alphabet = how, what.ours }))
		}
	}
	w.start(carriers...)
	for name, s := range sims {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{}
			var notes []note
			for what, text := range texts {
				to := w.number("00")
				want[to.Digits()] = what
				notes = append(notes, note{to: to, text: text, carrier: name})
			}
			w.await("sent", 20*time.Second, w.send(notes...)...)
			seen := 0
			for _, m := range s.Messages() {
				what := want[m.Destination]
				if seen++; !m.Complete || !m.InOrder || m.Text != texts[what] {
					t.Errorf("%s: complete %v, in order %v, %d segments, %q", what, m.Complete, m.InOrder, m.Segments, m.Text)
				}
				if strings.HasPrefix(name, "payload") && m.Segments != 1 {
					t.Errorf("%s went in %d segments, not in message_payload", what, m.Segments)
				}
			}
			if seen != len(texts) {
				t.Errorf("%d of %d messages arrived", seen, len(texts))
			}
			for _, m := range s.Submits() {
				by := ""
				if m.Concat != nil {
					by = m.Concat.By
				}
				if concat, _, _ := strings.Cut(name, "-"); by != "" && by != concat {
					t.Errorf("a segment is marked by %s", by)
				}
				if len(m.ShortMessage) > 254 {
					t.Errorf("short_message has %d octets", len(m.ShortMessage))
				}
			}
			w.clean(s)
		})
	}
}

// TestHabitsOfFields: what carriers want in the fields of submit_sm and bind.
//
// Source: rule carriers 8.4, 8.5, 8.6.
func TestHabitsOfFields(t *testing.T) {
	t.Parallel()
	defaults := func(m carriersim.Submit) string {
		return fmt.Sprintf("%d/%d %s > %d/%d type %q, validity %q", m.Source.TON, m.Source.NPI, m.Source.Addr, m.Destination.TON, m.Destination.NPI, m.ServiceType, m.Validity)
	}
	habits := []struct {
		habit  string
		change func(*dispatcher.Carrier)
		want   string // a pattern
		tlvs   map[uint16]string
		absent []uint16
		// The simulator has its own mind about them.
		lenient bool
	}{
		{habit: "as rule choices 4.2 has it", change: func(*dispatcher.Carrier) {}, want: `^5/0 DEMO > 1/1 type "", validity "00000000595\d000R"$`,
			tlvs: map[uint16]string{smpp.TagUserMessageReference: `^....$`}},
		{habit: "other TON and NPI", change: func(c *dispatcher.Carrier) { c.SourceTON, c.SourceNPI, c.DestTON, c.DestNPI = 0, 1, 2, 8 }, want: `^0/1 DEMO > 2/8`, lenient: true},
		{habit: "validity absolute", change: func(c *dispatcher.Carrier) { c.Validity = dispatcher.ValidityAbsolute },
			want: `validity "` + time.Now().UTC().Add(time.Hour).Format("0601") + `\d{8}000\+"$`},
		{habit: "validity none", change: func(c *dispatcher.Carrier) { c.Validity = dispatcher.ValidityNone }, want: `validity ""$`},
		{habit: "service_type", change: func(c *dispatcher.Carrier) { c.ServiceType = "CMT" }, want: `type "CMT"`},
		{habit: "static TLVs", change: func(c *dispatcher.Carrier) {
			c.TLVs = []smpp.TLV{{Tag: 0x1401, Value: []byte("abc")}, {Tag: 0x1402, Value: []byte{0, 0xFF}}}
		}, want: ``, tlvs: map[uint16]string{0x1401: "^616263$", 0x1402: "^00ff$", smpp.TagUserMessageReference: `^....$`}},
		{habit: "user_message_reference not wanted", change: func(c *dispatcher.Carrier) { c.NoReference = true }, absent: []uint16{smpp.TagUserMessageReference}},
		{habit: "user_message_reference is the carrier's own", change: func(c *dispatcher.Carrier) {
			c.TLVs = []smpp.TLV{{Tag: smpp.TagUserMessageReference, Value: []byte{7, 7}}}
		}, tlvs: map[uint16]string{smpp.TagUserMessageReference: "^0707$"}},
		{habit: "bound as two", change: func(c *dispatcher.Carrier) { c.Links[0].Mode = smpp.TransmitterReceiver }},
		{habit: "system_type", change: func(c *dispatcher.Carrier) { c.Links[0].SystemType = "VMA" }},
	}
	w := newWorld(t)
	var carriers []dispatcher.Carrier
	sims := make([]*sim, len(habits))
	for i, h := range habits {
		o := carriersim.Options{Name: fmt.Sprint("sim", i), Lenient: h.lenient}
		if h.habit == "system_type" {
			o.SystemType = "VMA"
		}
		sims[i] = w.carrier(o)
		carriers = append(carriers, named(fmt.Sprint("carrier", i), sims[i], h.change))
	}
	w.start(carriers...)
	for i, h := range habits {
		t.Run(h.habit, func(t *testing.T) {
			w, mno, name := w.in(t), sims[i], carriers[i].Name
			ids := w.send(note{to: w.number("00"), carrier: name}, note{to: w.number("00"), text: strings.Repeat("a", 200), carrier: name})
			w.await("sent", 10*time.Second, ids...)
			for _, m := range mno.Submits() {
				if got := defaults(m); !regexp.MustCompile(h.want).MatchString(got) {
					t.Errorf("%s, want %s", got, h.want)
				}
				have := map[uint16]string{}
				for _, tlv := range m.TLVs {
					have[tlv.Tag] = hex.EncodeToString(tlv.Value)
				}
				for tag, pattern := range h.tlvs {
					if !regexp.MustCompile(pattern).MatchString(have[tag]) {
						t.Errorf("TLV %#04x is %q, want %s", tag, have[tag], pattern)
					}
				}
				for _, tag := range h.absent {
					if _, ok := have[tag]; ok {
						t.Errorf("TLV %#04x is there", tag)
					}
				}
			}
			if h.habit == "bound as two" {
				if st := mno.Stats(); st.Sessions != 2 || st.Receipts == 0 {
					t.Errorf("%d sessions, %d receipts", st.Sessions, st.Receipts)
				}
			}
			if !h.lenient {
				w.clean(mno)
			}
		})
	}
}

// TestHabitOfCongestedCarrier: congestion_state in an answer slows the link.
//
// Source: rule carriers 4.2.
func TestHabitOfCongestedCarrier(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, Faults: carriersim.Faults{Congestion: 95}})
	w.start(mno.mno(func(c *dispatcher.Carrier) { c.Links[0].TPS = 200 }))
	ids := w.sendMany(100, "00")
	w.until("the link slows", func() bool { return w.metric("intumwa_smpp_pace_limit_per_second") <= 100 })
	mno.Faults(func(f *carriersim.Faults) { f.Congestion = 0 })
	w.await("sent", 20*time.Second, ids...)
	if n := mno.Stats().Refused; len(n) > 0 {
		t.Errorf("it was refused all the same: %v", n)
	}
	w.clean(mno)
}
