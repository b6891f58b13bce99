package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"intumwa/tools/rig"
)

// settle waits until messages flow and none is pending.
func (s *stage) settle(ctx context.Context) error {
	progress("waiting until everything runs")
	if err := s.await(ctx, "the first message", time.Minute, func() bool { return s.load.sent.Load() > 50 }); err != nil {
		return err
	}
	return s.quiet(ctx, "")
}

// quiet waits until no page or warning about this carrier is pending or firing; "" is any
// carrier.
func (s *stage) quiet(ctx context.Context, about string) error {
	since := time.Now()
	for deadline := since.Add(8 * time.Minute); time.Now().Before(deadline); {
		alerts, err := s.watch.alerts(ctx)
		if err != nil {
			return err
		}
		disturbed := false
		for _, a := range alerts {
			disturbed = disturbed || about == "" || concerns(a, about)
		}
		if disturbed {
			since = time.Now()
		}
		if time.Since(since) > 6*time.Second { // three evaluations
			return nil
		}
		if err := s.alive(); err != nil {
			return err
		}
		if err := rig.Rest(ctx, time.Second); err != nil {
			return err
		}
	}
	return fmt.Errorf("the alerts about %q do not end", about)
}

// concerns reports whether an alert is about a carrier, or about no carrier.
func concerns(a alert, about string) bool {
	return string(a.Labels["carrier"]) == about || a.Labels["carrier"] == "" && about == "webhooks"
}

// watchNormal watches normal load and returns the alerts that fired.
func (s *stage) watchNormal(ctx context.Context, span time.Duration) (time.Duration, []string, error) {
	progress("normal load for %s", span)
	fired := map[string]bool{}
	start := time.Now()
	for time.Since(start) < span {
		alerts, err := s.watch.alerts(ctx)
		if err != nil {
			return time.Since(start), nil, err
		}
		for _, a := range alerts {
			if a.State == "firing" && !fired[a.String()] {
				fired[a.String()] = true
				progress("fired under normal load: %s", a)
			}
		}
		if err := s.alive(); err != nil {
			return time.Since(start), nil, err
		}
		if err := rig.Rest(ctx, time.Second); err != nil {
			return time.Since(start), nil, err
		}
	}
	return time.Since(start), slices.Sorted(maps.Keys(fired)), nil
}

// play plays one fault: its alert must fire. It records other pages, except those still
// resolving from the previous fault.
func (s *stage) play(ctx context.Context, f fault) (result, error) {
	if err := s.quiet(ctx, f.about); err != nil {
		return result{}, err
	}
	out := result{fault: f}
	before, err := s.watch.alerts(ctx)
	if err != nil {
		return out, err
	}
	old := map[string]bool{}
	for _, a := range before {
		old[a.String()] = true
	}
	progress("%s", f.name)
	if err := f.play(ctx, s); err != nil {
		return out, err
	}
	others, warnings := map[string]bool{}, map[string]bool{}
	start := time.Now()
	note := func(a alert) (hit bool) {
		switch {
		case a.State != "firing" || old[a.String()]:
		case a.name() == f.alert && has(a, f.labels):
			return true
		case a.pages():
			others[a.String()] = true
		default:
			warnings[a.String()] = true
		}
		return false
	}
	for out.after == 0 && time.Since(start) < limit+30*time.Second {
		alerts, err := s.watch.alerts(ctx)
		if err != nil {
			return out, err
		}
		for _, a := range alerts {
			if note(a) {
				out.after = time.Since(start)
			}
		}
		if err := rig.Rest(ctx, 500*time.Millisecond); err != nil {
			return out, err
		}
	}
	if err := f.lift(ctx, s); err != nil {
		return out, err
	}
	// Alerts during the recovery count too.
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		alerts, err := s.watch.alerts(ctx)
		if err != nil {
			return out, err
		}
		for _, a := range alerts {
			note(a)
		}
		if err := rig.Rest(ctx, time.Second); err != nil {
			return out, err
		}
	}
	out.others, out.warnings = slices.Sorted(maps.Keys(others)), slices.Sorted(maps.Keys(warnings))
	return out, nil
}

func has(a alert, labels map[string]string) bool {
	for name, value := range labels {
		if string(a.Labels[model.LabelName(name)]) != value {
			return false
		}
	}
	return true
}
