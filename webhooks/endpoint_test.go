package webhooks

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"intumwa/internal/vault"
	"intumwa/sms"
)

func TestEndpointStore(t *testing.T) {
	pool := batchPool(t)
	w := New(pool, Options{SecretKey: &[32]byte{9}})
	ctx := context.Background()
	if _, err := w.EndpointOf(ctx, 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("no endpoint: %v", err)
	}
	for _, s := range []Setting{{}, {URL: "http://example.com/"}, {URL: "https://example.com/", Secret: "hush"}} {
		if _, err := w.SetEndpoint(ctx, 1, s); !errors.As(err, new(sms.Refusal)) {
			t.Errorf("%+v: %v, not a refusal", s, err)
		}
	}
	made, err := w.SetEndpoint(ctx, 1, Setting{URL: "https://example.com/"})
	if err != nil || !made.Active || made.CompanyID != 1 || made.UpdatedAt.IsZero() {
		t.Fatalf("made %+v, %v", made, err)
	}
	if key, err := secretKey(made.Secret); err != nil || len(key) != 32 {
		t.Errorf("its secret: %d bytes, %v", len(key), err)
	}
	var stored string
	if err := pool.QueryRow(ctx, `SELECT secret FROM webhook_endpoints WHERE company_id = 1`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(stored, vault.Prefix) {
		t.Error("the secret is stored in plain")
	}

	off := false
	changed, err := w.SetEndpoint(ctx, 1, Setting{Active: &off})
	if err != nil || changed.Active || changed.Secret != made.Secret || changed.URL != made.URL {
		t.Errorf("changed to %+v, %v", changed, err)
	}
	given := newSecret()
	changed, err = w.SetEndpoint(ctx, 1, Setting{URL: "https://example.org/", Secret: given})
	if err != nil || changed.Active || changed.Secret != given || changed.URL != "https://example.org/" {
		t.Errorf("changed to %+v, %v", changed, err)
	}
	read, err := w.EndpointOf(ctx, 1)
	if read.sealed, changed.Secret = "", ""; err != nil || !reflect.DeepEqual(read, changed) {
		t.Errorf("read %+v, %v; set %+v", read, err, changed)
	}
	if opened := secretOf(t, w); opened != given {
		t.Errorf("the secret reads %q", opened)
	}

	// Without the key it can be replaced, but not kept.
	keyless := New(pool, Options{})
	if _, err := keyless.SetEndpoint(ctx, 1, Setting{URL: "https://example.net/"}); err == nil {
		t.Error("kept a secret that does not open")
	}
	if e, err := keyless.SetEndpoint(ctx, 1, Setting{Secret: given}); err != nil || e.URL != "https://example.org/" {
		t.Errorf("replaced: %+v, %v", e, err)
	}
}

// secretOf returns the secret of company 1's endpoint.
func secretOf(t *testing.T, w *Webhooks) string {
	t.Helper()
	e, err := w.EndpointOf(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := w.vault.Open(1, e.sealed)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestConcurrentSettingsKeepOneSecret(t *testing.T) {
	w := New(batchPool(t), Options{})
	secrets := make([]string, 8)
	var wait sync.WaitGroup
	for i := range secrets {
		wait.Go(func() {
			e, err := w.SetEndpoint(context.Background(), 1, Setting{URL: "https://example.com/"})
			if err != nil {
				t.Error(err)
			}
			secrets[i] = e.Secret
		})
	}
	wait.Wait()
	for _, secret := range secrets {
		if secret != secrets[0] {
			t.Fatal("someone was shown a secret that is not the endpoint's")
		}
	}
}
