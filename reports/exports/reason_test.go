package exports

import (
	"strings"
	"testing"

	"intumwa/messages"
	"intumwa/messages/statistics"
	"intumwa/messages/submission"
	"intumwa/texts"
)

// TestDescribe: each reason has a text in both languages, and the carrier's words stay beside it.
func TestDescribe(t *testing.T) {
	all, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all.Languages {
		for reason, key := range map[string]string{
			submission.ReasonExpired: "reason.expired", submission.ReasonNoReceipt: "reason.noreceipt",
			submission.ReasonNoAnswer: "reason.noanswer",
			submission.ReasonOptedOut: "reason.optedout", submission.ReasonClosed: "reason.closed",
			messages.ReasonCancelled: "reason.cancelled",
			statistics.Others:        "reason.others", "smpp: the field is too long": "reason.unsendable",
		} {
			if text, carriers := Describe(l, reason); text != l.T(key) || carriers != "" {
				t.Errorf("%s: %s is %q, %q", l.Tag, reason, text, carriers)
			}
		}
		for reason, key := range map[string]string{
			"UNDELIV 011": "reason.undeliv", "UNDELIV": "reason.undeliv", "REJECTD 001": "reason.rejectd",
			"EXPIRED": "reason.late", "DELETED 2": "reason.deleted",
			"ESME_RINVDSTADR": "reason.number", "ESME_RINVSRCADR": "reason.sender", "ESME_RSYSERR": "reason.refused",
			"ESME_0x00000490": "reason.refused",
			"Absent":          "reason.reported", "expired by us": "reason.reported",
		} {
			if text, carriers := Describe(l, reason); text != l.T(key) || carriers != reason ||
				strings.Contains(text, texts.Missing) {
				t.Errorf("%s: %s is %q, %q", l.Tag, reason, text, carriers)
			}
		}
		if text, carriers := Describe(l, ""); text+carriers != "" {
			t.Errorf("no reason is %q, %q", text, carriers)
		}
	}
}
