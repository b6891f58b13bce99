package webhooks

import (
	"errors"
	"strings"
	"testing"
	"time"

	"intumwa/sms"
)

// TestRotation: for a day both secrets sign, and the header with room for one has the old
// secret's signature; then only the new one signs.
func TestRotation(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true, Idle: 20 * time.Millisecond, SecretKey: new([32]byte)})
	s := newSink(t, nil)
	before := setEndpoint(t, w, 1, s.URL)
	run(t, w)
	next := int64(0)
	told := func() request {
		t.Helper()
		next++
		enqueue(t, w, 1, next, 1)
		eventually(t, "a request", func() bool { return s.count() == int(next) })
		return s.requests()[next-1]
	}
	check := func(what, secret string, r request, signatures int, standard, contract bool) {
		t.Helper()
		sign, err := newSigner(secret)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(r.header.Get("webhook-signature"), " ")
		want := sign.standardSignature(r.header.Get("webhook-id"), r.header.Get("webhook-timestamp"), []byte(r.body))
		found := false
		for _, each := range got {
			found = found || each == want
		}
		if len(got) != signatures || found != standard ||
			(r.header.Get("X-Webhook-Signature") == sign.contractSignature([]byte(r.body))) != contract {
			t.Errorf("%s: %v", what, r.header)
		}
	}
	r := told()
	check("before", before.Secret, r, 1, true, true)

	after, err := w.Rotate(t.Context(), 1)
	if err != nil || after.Secret == before.Secret || after.PreviousUntil == nil ||
		time.Until(*after.PreviousUntil) < RotationOverlap-time.Minute {
		t.Fatalf("%+v, %v", after.PreviousUntil, err)
	}
	r = told()
	check("the old one while both are valid", before.Secret, r, 2, true, true)
	check("the new one while both are valid", after.Secret, r, 2, true, false)
	if _, refused := errors.AsType[sms.Refusal](errOf(w.Rotate(t.Context(), 1))); !refused {
		t.Error("a second rotation leaves receivers of the first without a secret")
	}
	if e, err := w.EndpointOf(t.Context(), 1); err != nil || secretOf(t, w) != after.Secret || e.PreviousUntil == nil {
		t.Errorf("%+v, %v", e.PreviousUntil, err)
	}
	perform(t, w, `UPDATE webhook_endpoints SET previous_until = now() WHERE company_id = 1`) // the day is over
	w.EndpointChanged("1")
	r = told()
	check("the old one past the switch", before.Secret, r, 1, false, false)
	check("the new one past the switch", after.Secret, r, 1, true, true)

	third, err := w.Rotate(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := w.EndRotation(t.Context(), 1); err != nil || e.PreviousUntil != nil {
		t.Errorf("%+v, %v", e, err)
	}
	r = told()
	check("the second after its end", after.Secret, r, 1, false, false)
	check("the third", third.Secret, r, 1, true, true)

	// A given secret replaces all others.
	if _, err := w.Rotate(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	given := newSecret()
	if e, err := w.SetEndpoint(t.Context(), 1, Setting{Secret: given}); err != nil || e.PreviousUntil != nil {
		t.Errorf("%+v, %v", e.PreviousUntil, err)
	}
	r = told()
	check("a secret that was given", given, r, 1, true, true)
	if err := errOf(w.Rotate(t.Context(), 2)); !errors.Is(err, ErrNotFound) {
		t.Errorf("an endpoint that is not there: %v", err)
	}
}
