package stories

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"intumwa/tools/rig"
)

// admin runs an operator's command and decodes its output.
func (w *world) admin(result any, stdin string, args ...string) error {
	w.t.Helper()
	cmd := exec.Command(cmp.Or(w.binary, built.get(w.t)), append(append([]string{"admin"}, args...), "--json", "--config",
		w.gateway.config)...)
	cmd.Env, cmd.Stdin = rig.Environment(), strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if stdout.Len() > 0 {
		if err := json.Unmarshal(stdout.Bytes(), result); err != nil {
			w.t.Fatalf("admin %v prints no JSON: %v\n%s", args, err, stdout.Bytes())
		}
	}
	if err != nil {
		return fmt.Errorf("admin %v: %w: %s", args, err, stderr.Bytes())
	}
	return nil
}

// orders is admin for a command that must succeed.
func (w *world) orders(result any, stdin string, args ...string) {
	w.t.Helper()
	if err := w.admin(result, stdin, args...); err != nil {
		w.t.Fatal(err)
	}
}

// metric is the sum of a metric's series with all of the given labels.
func (g *gateway) metric(name string, labels ...string) float64 {
	g.w.t.Helper()
	response, err := g.w.client.Get("http://" + g.ops + "/metrics")
	if err != nil {
		g.w.t.Fatalf("reading the metrics: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.w.t.Fatalf("reading the metrics: %v", err)
	}
	var sum float64
lines:
	for line := range strings.Lines(string(text)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if found, rest, _ := strings.Cut(series, "{"); found != name {
			continue
		} else {
			for _, label := range labels {
				if !strings.Contains(rest, label) {
					continue lines
				}
			}
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			g.w.t.Fatalf("metric %s: %v", series, err)
		}
		sum += n
	}
	return sum
}
