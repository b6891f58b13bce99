package postgres

import (
	"errors"
	"strings"
	"testing"
)

// TestJudge: which servers are accepted, in this order of connecting.
func TestJudge(t *testing.T) {
	known := NewPrimary(nil)
	for i, met := range []struct {
		state state
		want  error
	}{
		{state{"a", 1, false}, nil},
		{state{"a", 3, false}, nil},
		{state{"a", 2, false}, errOldPrimary},
		{state{"a", 3, false}, nil},
		{state{"", 0, false}, nil}, // not reported
		{state{"a", 1, false}, errOldPrimary},
		{state{"b", 1, false}, nil}, // another cluster: after an upgrade, or a restore from a dump
	} {
		if err := known.judge(met.state, nil); !errors.Is(err, met.want) {
			t.Errorf("%d: %+v: %v, want %v", i, met.state, err, met.want)
		}
	}
}

// TestPrefer: every host is tried, the primary first, each with and without TLS.
func TestPrefer(t *testing.T) {
	config, err := poolConfig("postgres://u@a:1,b:2,c:3/d?sslmode=prefer", Options{})
	if err != nil {
		t.Fatal(err)
	}
	known := NewPrimary(nil)
	known.first = "b:2"
	if err := known.prefer(t.Context(), config.ConnConfig); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, h := range hostsOf(config.ConnConfig) {
		order = append(order, h.address)
		if len(h.ways) != 2 || h.ways[0].TLSConfig == nil || h.ways[1].TLSConfig != nil {
			t.Errorf("%s is tried %d times", h.address, len(h.ways))
		}
	}
	if got := strings.Join(order, " "); got != "b:2 c:3 a:1" {
		t.Error(got)
	}
}
