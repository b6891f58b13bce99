package dashboard

import (
	"net/http"
	"testing"

	"intumwa/internal/mail"
)

// TestWithoutMailServer: without mail.url nobody is told that a link was sent.
func TestWithoutMailServer(t *testing.T) {
	w := newWorld(t, func(deps *Deps, _ *Options) {
		var err error
		if deps.Mailer, err = mail.New(mail.Options{}); err != nil {
			t.Error(err)
		}
	})
	const says = "sends no e-mails yet"
	stranger := newClient(w)
	stranger.wants(stranger.post("/sign-up", "name", "Aline", "email", "aline@example.com"), http.StatusServiceUnavailable,
		says)
	stranger.wants(stranger.post("/sign-up", "name", "Aline", "email", "no address"), http.StatusUnprocessableEntity)
	stranger.wants(stranger.post("/password", "email", "aline@example.com"), http.StatusServiceUnavailable, says)
	aline, _, _ := w.owner()
	aline.wants(aline.post("/people", "name", "X", "email", "x@example.com", "role", "reader"),
		http.StatusServiceUnavailable, says)
}
