package smpp

import "testing"

// Every status has a name, a class and a label; unknown ones are temporary.
func TestStatusTable(t *testing.T) {
	want := map[Class][]Status{
		ClassOK:         {0},
		ClassThrottled:  {0x14, 0x58},
		ClassPermanent:  {0x01, 0x0A, 0x61, 0x62, 0x65, 0x66},
		ClassUnroutable: {0x0B},
		ClassSession:    {0x04},
		ClassConfiguration: {0x02, 0x03, 0x06, 0x07, 0x15, 0x33, 0x34, 0x40, 0x42, 0x43, 0x44, 0x48, 0x49, 0x50, 0x51, 0x53,
			0x54, 0x55, 0x63, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0x104},
	}
	class := map[Status]Class{}
	for c, list := range want {
		for _, s := range list {
			class[s] = c
		}
	}
	for s := Status(0); s < 0x500; s++ {
		w, listed := class[s]
		if !listed {
			w = ClassTemporary
		}
		if got := s.Class(); got != w {
			t.Errorf("%s: class %s, want %s", s, got, w)
		}
	}
	for s, name := range map[Status]string{0: "ESME_ROK", 0x58: "ESME_RTHROTTLED", 0x14: "ESME_RMSGQFUL", 0x401: "0x00000401"} {
		if s.String() != name {
			t.Errorf("%#x is called %s", uint32(s), s)
		}
	}
	if got := Status(0x401).label(); got != "other" {
		t.Errorf("label %q", got)
	}
	if got := (&StatusError{"bind_transceiver", StatusInvPassword}).Error(); got != "smpp: bind_transceiver refused: ESME_RINVPASWD" {
		t.Errorf("error %q", got)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Down.String(), "down"}, {Connecting.String(), "connecting"}, {Bound.String(), "bound"}, {Paused.String(), "paused"},
		{State(9).String(), "invalid"},
		{NotWritten.String(), "not_written"}, {NoAnswer.String(), "no_answer"}, {Rejected.String(), "rejected"},
		{Accepted.String(), "accepted"}, {Outcome(9).String(), "invalid"},
		{Transceiver.String(), "transceiver"}, {TransmitterReceiver.String(), "transmitter_receiver"},
		{ClassOK.String(), "ok"}, {ClassThrottled.String(), "throttled"}, {ClassTemporary.String(), "temporary"},
		{ClassPermanent.String(), "permanent"}, {ClassConfiguration.String(), "configuration"},
		{ClassSession.String(), "session"}, {Class(99).String(), "invalid"},
		{command(0x77).String(), "unknown"}, {cmdSubmitSM.String(), "submit_sm"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
