package dashboard

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"intumwa/accounts/testnumbers"
)

// TestFreeCodesAreLimited: the page says when the next free code is possible. A company with credits gets one.
func TestFreeCodesAreLimited(t *testing.T) {
	w := newWorld(t, func(r *Deps, _ *Options) {
		*r.TestNumbers = *testnumbers.New(r.Pool, testnumbers.Options{Key: []byte("key"), Forget: r.Holders.Forget,
			FreeCodes: 1})
	})
	first, _, _ := w.customer("aline", "ISOKO", 0)
	first.wants(first.post("/test-number", "number", "79000001"), http.StatusSeeOther)
	second, _, _ := w.customer("bob", "BOBCO", 0)
	en, _ := w.d.words.ByTag("en")
	second.wants(second.post("/test-number", "number", "79990001"), http.StatusTooManyRequests,
		"Too many free codes were sent today", en.Date(time.Now().Add(24*time.Hour)))
	buyer, _, company := w.customer("carol", "CAROL", 5)
	buyer.wants(buyer.post("/test-number", "number", "79880001"), http.StatusSeeOther)
	w.exec(`update companies set approved = false where id = $1`, company.ID)
	w.exec(`update test_number_codes set created_at = created_at - interval '2 minutes'`)
	buyer.wants(buyer.post("/test-number", "number", "79880001"), http.StatusTooManyRequests, "Too many free codes")
}

// TestSignUpsOfAnAddress: a network address may ask for few links for signing up a day.
func TestSignUpsOfAnAddress(t *testing.T) {
	w := newWorld(t, func(r *Deps, o *Options) {
		r.Tries.SignUps, o.TrustedProxies = limit(t, 2, time.Hour), []string{"127.0.0.1"}
	})
	c := newClient(w)
	for i, want := range []int{http.StatusSeeOther, http.StatusSeeOther, http.StatusTooManyRequests} {
		c.wants(c.post("/sign-up", "name", "Aline", "email", fmt.Sprintf("a%d@example.com", i)), want)
	}
	c.wants(c.post("/sign-up", "name", "Aline", "email", "a9@example.com"), http.StatusTooManyRequests,
		"from your network today")
	c.address = "192.0.2.2"
	c.wants(c.post("/sign-up", "name", "Aline", "email", "a9@example.com"), http.StatusSeeOther)
}
