package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"intumwa/configs"
)

// TestTerminationGrace: systemd and Kubernetes give a process half as long again as its longest shutdown
// (endWithin, which TestTerminatedMidLoad proves) with the wait before SIGTERM, and the phases of the shutdown
// fit into that.
func TestTerminationGrace(t *testing.T) {
	link := carrierOf(&configs.Carrier{Links: []configs.Link{{}}}).Links[0].Options
	if parts := shutdownGrace + link.DrainTimeout + link.UnbindTimeout; parts >= endWithin {
		t.Errorf("answering what is under way, draining and unbinding may take %v of %v", parts, endWithin)
	}
	enough := func(where string, before, grace time.Duration) {
		t.Helper()
		if need := before + endWithin*3/2; grace < need {
			t.Errorf("%s waits %v, want %v or more", where, grace, need)
		}
	}
	for _, unit := range []string{"intumwa.service", "intumwa@.service"} {
		text, err := os.ReadFile(filepath.Join("../../deployments/systemd", unit))
		if err != nil {
			t.Fatal(err)
		}
		enough(unit, 0, seconds(t, regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`), text))
	}
	text, err := os.ReadFile("../../deployments/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	enough("compose.yaml", 0, seconds(t, regexp.MustCompile(`(?m)^    stop_grace_period: (\d+)s$`), text))
	text, err = os.ReadFile("../../deployments/kubernetes/intumwa.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deployments := 0
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var found struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				Template struct {
					Spec struct {
						Grace      int `yaml:"terminationGracePeriodSeconds"`
						Containers []struct {
							Ports     []struct{ Name string }
							Lifecycle struct {
								PreStop struct {
									Sleep struct{ Seconds int }
								} `yaml:"preStop"`
							}
						}
					}
				}
			}
		}
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if found.Kind != "Deployment" {
			continue
		}
		deployments++
		role, pod := found.Metadata.Name, found.Spec.Template.Spec
		if len(pod.Containers) != 1 {
			t.Fatalf("%s has %d containers", role, len(pod.Containers))
		}
		before := time.Duration(pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds) * time.Second
		enough(role, before, time.Duration(pod.Grace)*time.Second)
		// A Service must stop routing to a pod before the pod ends, or requests are lost.
		for _, port := range pod.Containers[0].Ports {
			if port.Name == "http" && before < 3*time.Second {
				t.Errorf("%s gets SIGTERM %v after it leaves its Service", role, before)
			}
		}
	}
	if deployments != len(configs.Roles)-1 { // smpp is off
		t.Errorf("%d deployments", deployments)
	}
}

func seconds(t *testing.T, pattern *regexp.Regexp, text []byte) time.Duration {
	t.Helper()
	found := pattern.FindSubmatch(text)
	if found == nil {
		t.Fatalf("nothing matches %s", pattern)
	}
	d, err := time.ParseDuration(string(found[1]) + "s")
	if err != nil {
		t.Fatal(err)
	}
	return d
}
