package operations

import (
	"strings"
	"testing"

	"intumwa/internal/testenv"
	"intumwa/webhooks"
)

// TestEndpointLetters: the owner learns of another URL, and of another signing secret however it came.
func TestEndpointLetters(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	by := By("test", nil, Deps{Pool: pool, Webhooks: webhooks.New(pool, webhooks.Options{AllowPrivate: true})})
	secret := "whsec_" + strings.Repeat("QUJD", 11)
	for _, step := range []struct {
		name string
		to   webhooks.Setting
		want string
	}{
		{"a new endpoint", webhooks.Setting{URL: "http://127.0.0.1:1/a"}, `{"url": "http://127.0.0.1:1/a"}`},
		{"a given secret", webhooks.Setting{Secret: secret}, `{"url": "http://127.0.0.1:1/a", "given": true}`},
		{"another URL", webhooks.Setting{URL: "http://127.0.0.1:1/b"}, `{"url": "http://127.0.0.1:1/b"}`},
		{"both", webhooks.Setting{URL: "http://127.0.0.1:1/c", Secret: secret},
			`{"url": "http://127.0.0.1:1/c", "given": true}`},
		{"neither", webhooks.Setting{Active: new(false)}, ``},
	} {
		if _, err := by.SetEndpoint(t.Context(), 1, step.to, nil); err != nil {
			t.Fatal(step.name, err)
		}
		var said string
		if err := pool.QueryRow(t.Context(), `WITH gone AS (DELETE FROM letters RETURNING said)
			SELECT coalesce(string_agg(said::text, ' '), '') FROM gone`).Scan(&said); err != nil {
			t.Fatal(err)
		}
		if said != step.want {
			t.Errorf("%s: %s, want %s", step.name, said, step.want)
		}
	}
}
