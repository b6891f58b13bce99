package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// prometheus is the real one.
type prometheus struct{ url string }

func (s *stage) startPrometheus(ctx context.Context, address, target string) (*prometheus, error) {
	rules, err := filepath.Abs(s.o.rules)
	if err != nil {
		return nil, fmt.Errorf("finding the rules: %w", err)
	}
	config := filepath.Join(s.o.dir, "prometheus.yml")
	text := fmt.Sprintf(`global:
  scrape_interval: 2s
  evaluation_interval: 2s
  external_labels: {runbooks: docs/runbooks}
rule_files: [%q]
scrape_configs:
  - job_name: intumwa
    static_configs: [{targets: [%q]}]
`, rules+"/*.yaml", target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("writing Prometheus' configuration: %w", err)
	}
	if _, err := s.start(ctx, "prometheus", s.o.prometheus, "--config.file="+config, "--web.listen-address="+address,
		"--storage.tsdb.path="+filepath.Join(s.o.dir, "prometheus-data"), "--log.level=warn"); err != nil {
		return nil, err
	}
	p := &prometheus{url: "http://" + address}
	return p, s.await(ctx, "Prometheus", 60*time.Second, func() bool { return answers(ctx, p.url+"/-/ready") })
}

// alert is one that Prometheus shows.
type alert struct {
	Labels map[string]string `json:"labels"`
	State  string            `json:"state"`
}

func (a alert) name() string { return a.Labels["alertname"] }
func (a alert) pages() bool  { return a.Labels["severity"] == "page" }

// String is the alert with whom it is about.
func (a alert) String() string {
	for _, label := range []string{"link", "carrier", "instance"} {
		if a.Labels[label] != "" {
			return a.name() + "(" + a.Labels[label] + ")"
		}
	}
	return a.name()
}

func (p *prometheus) get(ctx context.Context, path string, query url.Values, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return fmt.Errorf("asking Prometheus: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking Prometheus: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	var said struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil {
		return fmt.Errorf("reading Prometheus' answer: %w", err)
	}
	if said.Status != "success" {
		return fmt.Errorf("prometheus: %s", said.Error)
	}
	if err := json.Unmarshal(said.Data, into); err != nil {
		return fmt.Errorf("reading Prometheus' answer: %w", err)
	}
	return nil
}

// alerts are those pending or firing.
func (p *prometheus) alerts(ctx context.Context) ([]alert, error) {
	var data struct {
		Alerts []alert `json:"alerts"`
	}
	err := p.get(ctx, "/api/v1/alerts", nil, &data)
	return data.Alerts, err
}

// sample is the first number that a query gives, and how many series it has.
func (p *prometheus) sample(ctx context.Context, expr string) (value string, series int, err error) {
	var data struct {
		Result []struct {
			Value [2]any `json:"value"`
		} `json:"result"`
	}
	if err := p.get(ctx, "/api/v1/query", url.Values{"query": {expr}}, &data); err != nil {
		return "", 0, fmt.Errorf("%s: %w", expr, err)
	}
	for _, r := range data.Result {
		if text, _ := r.Value[1].(string); text != "NaN" {
			return text, len(data.Result), nil
		}
	}
	return "", len(data.Result), nil
}

// telling is what no label's value may look like: a long number, an address, a
// URL, a token.
var telling = regexp.MustCompile(`[0-9]{7,}|@|://|whsec|\|`)

// labels counts the gateway's series and lists the label values that look like
// something that has no end.
func (p *prometheus) labels(ctx context.Context) (series int, bad []string, err error) {
	var all []map[string]string
	if err := p.get(ctx, "/api/v1/series", url.Values{"match[]": {`{__name__=~"intumwa_.+"}`}}, &all); err != nil {
		return 0, nil, err
	}
	for _, one := range all {
		for name, value := range one {
			if name != "instance" && telling.MatchString(value) {
				bad = append(bad, one["__name__"]+" "+name+"="+value)
			}
		}
	}
	return len(all), bad, nil
}

// variables stand in for a dashboard's.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$carrier", ".+", "$link", ".+", "$route", ".+", "$instance", ".+")
