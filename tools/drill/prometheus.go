package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"intumwa/tools/rig"
)

// prometheus is the API of the running Prometheus.
type prometheus struct{ v1.API }

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
	if _, err := s.start("prometheus", s.o.prometheus, "--config.file="+config, "--web.listen-address="+address,
		"--storage.tsdb.path="+filepath.Join(s.o.dir, "prometheus-data"), "--log.level=warn"); err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.Config{Address: "http://" + address})
	if err != nil {
		return nil, fmt.Errorf("asking Prometheus: %w", err)
	}
	return &prometheus{v1.NewAPI(client)}, s.await(ctx, "Prometheus", 60*time.Second,
		func() bool { return rig.Answers(ctx, "http://"+address+"/-/ready") })
}

// alert is an alert of Prometheus.
type alert v1.Alert

func (a alert) name() string { return string(a.Labels["alertname"]) }
func (a alert) pages() bool  { return a.Labels["severity"] == "page" }

// String is the alert with the carrier that it concerns.
func (a alert) String() string {
	for _, label := range []model.LabelName{"link", "carrier", "instance"} {
		if a.Labels[label] != "" {
			return fmt.Sprintf("%s(%s)", a.name(), a.Labels[label])
		}
	}
	return a.name()
}

// alerts returns the pending and firing alerts, without the dead man's switch, which always fires, and without
// UnusualSending: the drill's companies have no past, so all that they send is unusual.
func (p *prometheus) alerts(ctx context.Context) ([]alert, error) {
	found, err := p.Alerts(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking Prometheus for alerts: %w", err)
	}
	var list []alert
	for _, found := range found.Alerts {
		if a := alert(found); a.Labels["severity"] != "info" && a.name() != "UnusualSending" {
			list = append(list, a)
		}
	}
	return list, nil
}
