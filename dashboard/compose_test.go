package dashboard

import (
	"net/http"
	"strings"
	"testing"
)

// TestTextSizeOnPage: the page shows the size while the user types, and offers look-alikes.
func TestTextSizeOnPage(t *testing.T) {
	w := newWorld(t, nil)
	c, _, _ := w.customer("aline", "ISOKO", 10)
	c.wants(c.post("/messages/new", "do", "check", "message", "a\r\nb", "sender", "ISOKO"), http.StatusOK, "3 / 600")
	preview := `<p class="from">ISOKO</p>
      <p class="bubble" dir="auto">` + strings.Repeat("x", 153) +
		`<span class="cut" aria-hidden="true"></span>xxxxxxxx</p>`
	c.wants(c.post("/messages/new", "do", "check", "message", strings.Repeat("x", 161), "sender", "ISOKO"), http.StatusOK,
		preview)

	// One button replaces characters that have a GSM-7 look-alike; the rest of the form stays.
	button := `value="replace"`
	c.wants(c.post("/messages/new", "do", "check", "message", "ç’est 😀", "sender", "ISOKO"), http.StatusOK, button)
	replaced := c.post("/messages/new", "do", "replace", "message", "« ç’est » 😀", "sender", "ISOKO", "number", "79000001")
	c.wants(replaced, http.StatusOK, ">\n&#34; c&#39;est &#34; 😀</textarea>", `value="79000001"`)
	if strings.Contains(replaced.body, button) {
		t.Error("there is nothing left to replace, but the button is there")
	}
	w.counts(0, `select count(*) from messages`)
}
