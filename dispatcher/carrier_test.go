package dispatcher

import (
	"testing"
	"time"

	"intumwa/smpp"
	"intumwa/sms"
)

func TestMeaning(t *testing.T) {
	c := Carrier{States: map[string]sms.Status{"ACCEPTD": sms.Pending, "UNKNOWN": sms.Failed, "OK": sms.Sent}}
	for state, want := range map[string]sms.Status{
		"DELIVRD": sms.Sent, "UNDELIV": sms.Failed, "EXPIRED": sms.Failed, "REJECTD": sms.Failed, "DELETED": sms.Failed, "SKIPPED": sms.Failed,
		"ACCEPTD": sms.Pending, "UNKNOWN": sms.Failed, "OK": sms.Sent,
		"ENROUTE": sms.Pending, "SCHEDULED": sms.Pending, "BUFFRED": sms.Pending, "": sms.Pending, "delivrd": sms.Pending,
	} {
		if status, final := c.meaning(state); status != want || final != (want != sms.Pending) {
			t.Errorf("%q means %v, final %v; want %v", state, status, final, want)
		}
	}
	plain := Carrier{}
	if status, final := plain.meaning("ACCEPTD"); status != sms.Sent || !final {
		t.Errorf("ACCEPTD by default: %v, %v", status, final)
	}
	if _, final := plain.meaning("UNKNOWN"); final {
		t.Error("UNKNOWN by default is final")
	}
}

func TestClass(t *testing.T) {
	c := Carrier{Classes: map[smpp.Status]smpp.Class{0x0B: smpp.ClassTemporary, 0x401: smpp.ClassPermanent}}
	for status, want := range map[smpp.Status]smpp.Class{
		0x0B: smpp.ClassTemporary, 0x401: smpp.ClassPermanent, 0x402: smpp.ClassTemporary, 0x0A: smpp.ClassPermanent,
		smpp.StatusThrottled: smpp.ClassThrottled, smpp.StatusMsgQueueFull: smpp.ClassThrottled, smpp.StatusSysErr: smpp.ClassTemporary,
		0x48: smpp.ClassConfiguration, 0x04: smpp.ClassSession,
	} {
		if got := c.class(status); got != want {
			t.Errorf("%v is %v, want %v", status, got, want)
		}
	}
}

// TestRetryDelay: at least RetryMin, at most RetryMax, doubling in between,
// jittered. rule choices 7.2
func TestRetryDelay(t *testing.T) {
	c := Carrier{Name: "c"}
	if err := c.defaults(); err != nil {
		t.Fatal(err)
	}
	for attempt, want := range map[int]time.Duration{
		0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 32 * time.Second, 7: time.Minute, 19: time.Minute, 20: time.Minute, 1 << 40: time.Minute,
	} {
		for _, random := range []float64{0, 0.5, 0.999999} {
			got := c.retryDelay(attempt, random)
			jittered := min(max(time.Duration(float64(want)*(0.75+random/2)), time.Second), time.Minute)
			if got != jittered {
				t.Errorf("attempt %d, random %v: %v, want %v", attempt, random, got, jittered)
			}
		}
	}
	if a, b := c.retryDelay(4, 0), c.retryDelay(4, 0.9); a == b {
		t.Error("no jitter")
	}
	odd := Carrier{RetryMin: time.Minute, RetryMax: time.Second}
	if got := odd.retryDelay(3, 0.5); got != time.Second {
		t.Errorf("a minimum above the maximum: %v", got)
	}
}

func TestCarrierDefaults(t *testing.T) {
	c := Carrier{Name: "c"}
	if err := c.defaults(); err != nil || c.OnReceiptTimeout != sms.Failed || c.ReceiptTimeout != time.Hour || c.RetryMin != time.Second ||
		c.RetryMax != time.Minute || c.FailoverAfter != 10*time.Second {
		t.Errorf("%+v, %v", c, err)
	}
	kept := Carrier{Name: "c", OnReceiptTimeout: sms.Sent, ReceiptTimeout: 2, RetryMin: 3, RetryMax: 4, FailoverAfter: 5}
	if err := kept.defaults(); err != nil || kept.OnReceiptTimeout != sms.Sent || kept.ReceiptTimeout != 2 || kept.RetryMin != 3 || kept.RetryMax != 4 || kept.FailoverAfter != 5 {
		t.Errorf("%+v, %v", kept, err)
	}
	for hold, taken := range map[time.Duration]bool{40 * time.Second: false, 41 * time.Second: true} {
		c := Carrier{Name: "c", Links: []Link{{Options: smpp.Options{UnknownHold: hold}}}}
		if err := c.defaults(); (err == nil) != taken {
			t.Errorf("unknown_hold %s, and a dead session found out after 40s: %v", hold, err)
		}
	}
	if err := (&Carrier{}).defaults(); err == nil {
		t.Error("a carrier without a name was taken")
	}
}
