package profile

import (
	"testing"

	"intumwa/smpp"
	"intumwa/sms"
)

func TestMeaning(t *testing.T) {
	c := Profile{States: map[string]sms.Status{"ACCEPTD": sms.Pending, "UNKNOWN": sms.Failed, "OK": sms.Sent}}
	for state, want := range map[string]sms.Status{
		"DELIVRD": sms.Sent, "UNDELIV": sms.Failed, "EXPIRED": sms.Failed, "REJECTD": sms.Failed, "DELETED": sms.Failed,
		"SKIPPED": sms.Failed,
		"ACCEPTD": sms.Pending, "UNKNOWN": sms.Failed, "OK": sms.Sent,
		"ENROUTE": sms.Pending, "SCHEDULED": sms.Pending, "BUFFRED": sms.Pending, "": sms.Pending, "delivrd": sms.Pending,
	} {
		if status, final := c.Meaning(state); status != want || final != (want != sms.Pending) {
			t.Errorf("%q means %v, final %v; want %v", state, status, final, want)
		}
	}
	plain := Profile{}
	if status, final := plain.Meaning("ACCEPTD"); status != sms.Sent || !final {
		t.Errorf("ACCEPTD by default: %v, %v", status, final)
	}
	if _, final := plain.Meaning("UNKNOWN"); final {
		t.Error("UNKNOWN by default is final")
	}
}

// TestClass: the class of every status (rule carriers 3.9). A carrier may override it.
func TestClass(t *testing.T) {
	classes := map[smpp.Class][]smpp.Status{
		smpp.ClassPermanent:  {0x01, 0x0A, 0x65, 0x66},
		smpp.ClassUnroutable: {0x0B},
		smpp.ClassThrottled:  {0x14, 0x58},
		smpp.ClassSession:    {0x04},
		smpp.ClassConfiguration: {0x02, 0x03, 0x06, 0x07, 0x15, 0x33, 0x34, 0x40, 0x42, 0x43, 0x44, 0x48, 0x49, 0x50, 0x51,
			0x53, 0x54, 0x55, 0x61, 0x62, 0x63,
			0xC0, 0xC1, 0xC2, 0xC3, 0xC4, 0x100, 0x101, 0x102, 0x103, 0x104},
	}
	want := map[smpp.Status]smpp.Class{}
	for status := smpp.Status(1); status <= 0x4FF; status++ {
		want[status] = smpp.ClassTemporary
	}
	for class, list := range classes {
		for _, status := range list {
			want[status] = class
		}
	}
	for status, class := range want {
		if got := (&Profile{}).ClassOf(status); got != class {
			t.Errorf("%v is %v, want %v", status, got, class)
		}
	}
	c := Profile{Classes: map[smpp.Status]smpp.Class{0x0B: smpp.ClassTemporary, 0x401: smpp.ClassPermanent}}
	if c.ClassOf(0x0B) != smpp.ClassTemporary || c.ClassOf(0x401) != smpp.ClassPermanent ||
		c.ClassOf(0x402) != smpp.ClassTemporary {
		t.Error("the carrier's own classes do not count")
	}
}
