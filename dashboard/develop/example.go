package develop

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/dashboard/testmode"
	"intumwa/dashboard/web"
	"intumwa/internal/inprocess"
	"intumwa/sms"
)

// newKey is a new API key, shown once, with an example request that the page can run. It passes from page to page until
// the user leaves them.
type newKey struct {
	Text   string     `json:"text"`             // of the key
	Number sms.Number `json:"number,omitempty"` // recipient of the example
	Once   string     `json:"once,omitempty"`   // idempotency key of the next run
	Status int        `json:"status,omitempty"` // HTTP status of the latest run; 0: none
	Answer string     `json:"answer,omitempty"` // its body

	Token   keys.Token    `json:"-"`
	Example bool          `json:"-"` // it is shown with its example
	Curl    string        `json:"-"` // empty: the user has no company yet
	Test    testmode.Mode `json:"-"`
}

// keepText returns k as [web.Visit.KeepOnce] keeps it.
func (k newKey) keepText() string {
	text, _ := json.Marshal(k) // texts and numbers always marshal
	return string(text)
}

// Sandboxed reports whether the example goes to a number of the sandbox.
func (k newKey) Sandboxed() bool { return k.Number != k.Test.Number }

// Sent returns the id of the message that the latest run sent; empty if none.
func (k newKey) Sent() string {
	var answer struct{ ID string }
	if k.Status != http.StatusOK || json.Unmarshal([]byte(k.Answer), &answer) != nil {
		return ""
	}
	return answer.ID
}

// example completes k for its page. The recipient is the verified test number while the test pool has segments,
// otherwise a number of the sandbox.
func (ps *Pages) example(v *web.Visit, k *newKey, test testmode.Mode) {
	k.Once, k.Test = cmp.Or(k.Once, web.NewFormKey()), test
	if k.Number == "" {
		k.Number = sms.SandboxFates()[0].Number
		if k.Test.Verified && k.Test.Remaining > 0 {
			k.Number = k.Test.Number
		}
	}
	k.Curl = ps.Test.Curl(k.Text, ps.exampleTo(v, k.Number))
}

func (ps *Pages) exampleTo(v *web.Visit, number sms.Number) string {
	return testmode.Body(number, ps.Test.Sender, v.Lang.T("first.example"))
}

// RunExample is POST /keys/run: it sends the example request of a new key to the API. Until a message is accepted, all
// runs share one idempotency key, so a second click sends no second message.
func (ps *Pages) RunExample(v *web.Visit, _ *people.Session) error {
	f := v.Form()
	k := newKey{Text: f.Value("made"), Number: sms.Number(f.Value("number")), Once: f.FormKey()}
	id, _, _ := strings.Cut(k.Text, "|")
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil { // no key at all
		return v.Redirect("/keys", "")
	}
	// the API has its own bounds
	v.Leave()
	// it is sent even if the browser disconnects
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.Ctx()), web.RequestTimeout-2*time.Second)
	defer cancel()
	answer, err := inprocess.Post(ctx, ps.API, v.C.Request, "/v1/sms", k.Text, ps.exampleTo(v, k.Number),
		http.Header{"Idempotency-Key": {web.KeyPrefix + k.Once}})
	if err != nil {
		return err
	}
	k.Status, k.Answer = answer.Status, answer.Body.String()
	if k.Status == http.StatusOK {
		k.Once = ""
	}
	return v.Done(v.KeepOnce("key of "+strconv.FormatInt(n, 10), k.keepText()), "/keys#run", "")
}
