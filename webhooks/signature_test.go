package webhooks

import (
	"encoding/base64"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"intumwa/internal/testenv"
	"intumwa/sms"
)

// Receivers in three languages check the published vectors. They share nothing with the
// code that signs.
var receivers = []struct {
	program string
	args    []string
}{
	{"python3", []string{"-c", `
import base64, hashlib, hmac, sys
secret, body, ident, stamp = sys.argv[1:]
print(hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest())
key = base64.b64decode(secret[len("whsec_"):])
print("v1," + base64.b64encode(hmac.new(key, (ident + "." + stamp + "." + body).encode(), ` +
		`hashlib.sha256).digest()).decode())
`}},
	{"node", []string{"-e", `
const { createHmac } = require("crypto");
const [secret, body, ident, stamp] = process.argv.slice(1);
console.log(createHmac("sha256", secret).update(body).digest("hex"));
const key = Buffer.from(secret.slice("whsec_".length), "base64");
console.log("v1," + createHmac("sha256", key).update(ident + "." + stamp + "." + body).digest("base64"));
`}},
	{"sh", []string{"-c", `
printf %s "$2" | openssl dgst -sha256 -hmac "$1" -r | cut -d' ' -f1
key=$(printf %s "${1#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
printf v1,; printf %s "$3.$4.$2" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A
`, "sh"}},
}

func TestVectorsVerifyElsewhere(t *testing.T) {
	vectors, err := TestVectors()
	if err != nil {
		t.Fatal(err)
	}
	for _, receiver := range receivers {
		t.Run(receiver.program, func(t *testing.T) {
			needs := receiver.program
			if needs == "sh" {
				needs = "openssl"
			}
			testenv.Tool(t, needs)
			for _, v := range vectors {
				args := append(append([]string{}, receiver.args...), v.Secret, v.Body, v.ID, v.Timestamp)
				out, err := exec.Command(receiver.program, args...).Output()
				if err != nil {
					t.Fatalf("running %s: %v", receiver.program, err)
				}
				if got, want := strings.TrimSpace(string(out)), v.Signature+"\n"+v.Standard; got != want {
					t.Errorf("%s computes\n%s\nwe send\n%s", receiver.program, got, want)
				}
			}
		})
	}
}

func TestSecrets(t *testing.T) {
	of := func(n int) string { return secretPrefix + base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for range 100 {
		key, err := secretKey(newSecret())
		if err != nil || len(key) != 32 {
			t.Fatalf("a new secret has %d bytes, %v", len(key), err)
		}
	}
	if one, two := newSecret(), newSecret(); one == two {
		t.Error("two secrets are alike")
	}
	for secret, good := range map[string]bool{
		of(24): true, of(32): true, of(64): true,
		of(23): false, of(65): false, "": false, "whsec_": false,
		strings.TrimPrefix(of(32), secretPrefix): false, "whsec_not base64!": false,
		strings.TrimRight(of(32), "="): false, of(32) + "\n": false, "WHSEC_" + of(32)[6:]: false,
	} {
		_, err := secretKey(secret)
		if good != (err == nil) {
			t.Errorf("secretKey(%q): %v", secret, err)
		}
		if err != nil && !errors.As(err, new(sms.Refusal)) {
			t.Errorf("secretKey(%q) gives %T, not a refusal", secret, err)
		}
	}
}

func (s *signer) contractSignature(body []byte) string { return string(s.appendContract(nil, body)) }

func (s *signer) standardSignature(id, timestamp string, body []byte) string {
	return string(s.appendStandard(nil, []byte(id+"."+timestamp+"."), body))
}

// signedBy reports whether a request has both signatures of one secret.
func signedBy(secret string, r request) bool {
	sign, err := newSigner(secret)
	return err == nil && r.header.Get("X-Webhook-Signature") == sign.contractSignature([]byte(r.body)) &&
		r.header.Get("webhook-signature") == sign.standardSignature(r.header.Get("webhook-id"),
			r.header.Get("webhook-timestamp"), []byte(r.body))
}
