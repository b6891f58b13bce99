package stories

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
)

// endsWell runs the checks at the end of every world.
func (w *world) endsWell() {
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.explain()
			return
		}
		if w.running() {
			w.audited()
		}
		for _, g := range w.gateways {
			if g.cmd == nil {
				continue
			}
			if g.hasEnded() {
				w.t.Errorf("%s ended without a signal", g.name)
			}
			g.terminate()
		}
		if !w.scene.brokenProtocol {
			w.keptProtocol()
		}
		w.keptSilence()
		if w.t.Failed() {
			w.explain()
		}
	})
}

func (w *world) running() bool {
	for _, g := range w.gateways {
		if g.cmd != nil {
			return true
		}
	}
	return false
}

// keptProtocol checks the protocol errors that the carriers saw.
func (w *world) keptProtocol() {
	for _, c := range w.carriers {
		for _, v := range c.Violations() {
			w.t.Errorf("carrier %s: session %d, %s %d: %s (%s)", c.Name(), v.Session, v.Command, v.Sequence, v.Text, v.Status)
		}
	}
}

var (
	digits     = regexp.MustCompile(`[0-9]{8,}`)
	timestamps = regexp.MustCompile(`"(time|at|since)":"[^"]*"|\btime=\S+`)
	faults     = []string{"DATA RACE", "panic", "goroutine 1 [", "fatal error:"}
)

// keptSilence searches the logs for planted secrets and for signs of a crash.
func (w *world) keptSilence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.gateways {
		log := g.logText()
		for _, text := range faults {
			if i := bytes.Index(log, []byte(text)); i >= 0 {
				w.t.Errorf("the log of %s holds %q:\n%s", g.name, text, log[i:min(len(log), i+4000)])
			}
		}
		for _, leak := range leaks(log, w.secrets, w.numbers) {
			w.t.Errorf("the log of %s holds what it must not: %s", g.name, leak)
		}
	}
}

// leaks finds planted texts, and planted numbers in any form: the eight national digits
// alone, or after 257 or 00257.
func leaks(log []byte, secrets []string, numbers map[string]bool) []string {
	const most = 5
	var found []string
	for _, secret := range secrets {
		if i := bytes.Index(log, []byte(secret)); i >= 0 && len(found) < most {
			found = append(found, excerpt(log, i, len(secret)))
		}
	}
	log = timestamps.ReplaceAll(log, nil)
	for _, at := range digits.FindAllIndex(log, -1) {
		run := string(log[at[0]:at[1]])
		if len(found) < most && (numbers[run] || numbers[strings.TrimPrefix(run, "257")] ||
			numbers[strings.TrimPrefix(run, "00257")]) {
			found = append(found, excerpt(log, at[0], at[1]-at[0]))
		}
	}
	return found
}

func excerpt(log []byte, at, length int) string {
	return "…" + string(log[max(0, at-200):min(len(log), at+length+100)]) + "…"
}

// explain prints what helps to debug a failed story.
func (w *world) explain() {
	for _, c := range w.carriers {
		w.t.Log(c)
	}
	for _, g := range w.gateways {
		w.t.Logf("the log of %s (%s) ends with:\n%s", g.name, g.log, g.logTail())
	}
}

// ok answers a webhook with 200.
func ok(http.ResponseWriter, *http.Request) {}

// secret plants texts that no log may contain.
func (w *world) secret(texts ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets = append(w.secrets, texts...)
}

// password is a new secret.
func (w *world) password() string {
	password := word()
	w.secret(password)
	return password
}
