package dashboard

import (
	"testing"

	"intumwa/dashboard/words"
	"intumwa/messages"
	"intumwa/messages/submission"
)

// TestReasonsAreTranslated: the reasons of our own are said in the user's language, those of carriers as they came.
func TestReasonsAreTranslated(t *testing.T) {
	all, err := words.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range all.Languages {
		v := &visit{lang: language}
		for _, reason := range []string{submission.ReasonExpired, submission.ReasonNoReceipt, submission.ReasonNoAnswer, submission.ReasonOptedOut, messages.ReasonCancelled} {
			if v.reason(reason) == reason {
				t.Errorf("%s: %q is shown as it is", language.Tag, reason)
			}
		}
		if got := v.reason("UNDELIV 001"); got != "UNDELIV 001" {
			t.Errorf("%s: a carrier's words become %q", language.Tag, got)
		}
	}
}
