package web

import "testing"

// TestWrap: an endless word may break, a usual one may not, and all is escaped.
func TestWrap(t *testing.T) {
	for text, want := range map[string]string{
		"Internationale company.create": "Internationale company.create", "<b>+1</b>\n": `&lt;b&gt;&#43;1&lt;/b&gt;\n`,
		"developer.1@example.com aaaaaaaaaabbbbbbbbbbccccdd": "developer.1@example.com aaaaaaaaaabbbbbbbbbbcccc<wbr>d<wbr>d",
	} {
		if got := string(wrap(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
