package api

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

// TestCodeSamples: each sample starts a verification, and says of a code whether it is right.
func TestCodeSamples(t *testing.T) {
	w := newWorld(t, worldOptions{}).settle()
	p, err := madePages(Options{TestSender: testSender}, 500)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.editions["en"].content.Code {
		t.Run(s.Name, func(t *testing.T) {
			if s.Name == "sh" {
				testenv.Tool(t, "jq")
			}
			file, args := runnable(t, s, nil)
			run := func(values ...string) string {
				t.Helper()
				cmd := exec.Command(args[0], append(append(args[1:], file), values...)...)
				cmd.Env = append(os.Environ(), "BASE_URL="+w.server.URL+"/v1", "TOKEN="+w.tokens["live"], "no_proxy=*")
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return strings.TrimSpace(string(out))
			}
			id := run("start", "+25701000001")
			code := w.verificationCode(id)
			wrong := map[bool]string{true: "111111", false: "000000"}[code == "000000"]
			if said := run("check", id, wrong); said != "The code is not right." {
				t.Errorf("a wrong code: %q", said)
			}
			if said := run("check", id, code); said != "approved" {
				t.Errorf("the right code: %q", said)
			}
			w.aSecondLater()
			if said := run("check", id, code); said != "The verification is finished." {
				t.Errorf("the right code again: %q", said)
			}
		})
	}
}
