package main

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"intumwa/webhooks"
)

// TestVerifyRefuses: the receiver's side accepts only our vectors.
func TestVerifyRefuses(t *testing.T) {
	vectors, err := webhooks.TestVectors()
	if err != nil {
		t.Fatal(err)
	}
	v := vectors[0]
	signed := time.Unix(1772352002, 0)
	for name, test := range map[string]struct {
		change func(h http.Header)
		secret string
		body   string
		now    time.Time
		good   bool
	}{
		"as sent":         {secret: v.Secret, body: v.Body, now: signed, good: true},
		"a little later":  {secret: v.Secret, body: v.Body, now: signed.Add(4 * time.Minute), good: true},
		"replayed":        {secret: v.Secret, body: v.Body, now: signed.Add(6 * time.Minute)},
		"from the future": {secret: v.Secret, body: v.Body, now: signed.Add(-6 * time.Minute)},
		"another body":    {secret: v.Secret, body: v.Body + " ", now: signed},
		"another secret": {secret: "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)), body: v.Body,
			now: signed},
		"no secret": {secret: "", body: v.Body, now: signed},
		"another id": {secret: v.Secret, body: v.Body, now: signed,
			change: func(h http.Header) { h.Set("webhook-id", "evt_1") }},
		"another timestamp": {secret: v.Secret, body: v.Body, now: signed,
			change: func(h http.Header) { h.Set("webhook-timestamp", "1772352003") }},
		"no signature": {secret: v.Secret, body: v.Body, now: signed,
			change: func(h http.Header) { h.Del("X-Webhook-Signature") }},
		"no second": {secret: v.Secret, body: v.Body, now: signed,
			change: func(h http.Header) { h.Del("webhook-signature") }},
		"upper-case hex": {secret: v.Secret, body: v.Body, now: signed,
			change: func(h http.Header) { h.Set("X-Webhook-Signature", strings.ToUpper(v.Signature)) }},
	} {
		h := http.Header{}
		h.Set("X-Webhook-Signature", v.Signature)
		h.Set("webhook-id", v.ID)
		h.Set("webhook-timestamp", v.Timestamp)
		h.Set("webhook-signature", v.Standard)
		if test.change != nil {
			test.change(h)
		}
		if err := verify(test.secret, h, []byte(test.body), test.now); test.good != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
