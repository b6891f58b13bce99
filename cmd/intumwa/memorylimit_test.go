package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCgroupMemory(t *testing.T) {
	const v2, v1 = "0::/", "5:cpu,cpuacct:/a\n4:memory:/"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no Linux":             {nil, 0},
		"version 2":            {map[string]string{"proc/self/cgroup": v2 + "system.slice/intumwa.service\n", "sys/fs/cgroup/system.slice/intumwa.service/memory.max": "536870912\n"}, 512 << 20},
		"version 2, none":      {map[string]string{"proc/self/cgroup": v2 + "a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		"the slice's":          {map[string]string{"proc/self/cgroup": v2 + "a/b\n", "sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/b/memory.max": "2000\n"}, 1000},
		"in a container":       {map[string]string{"proc/self/cgroup": v2 + "\n", "sys/fs/cgroup/memory.max": "3000\n"}, 3000},
		"a path of the host":   {map[string]string{"proc/self/cgroup": v2 + "../../pod/x\n", "sys/fs/cgroup/memory.max": "3000\n"}, 3000},
		"version 1":            {map[string]string{"proc/self/cgroup": v1 + "docker/x\n0::/\n", "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": "4000\n"}, 4000},
		"version 1, container": {map[string]string{"proc/self/cgroup": v1 + "docker/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "5000\n"}, 5000},
		"version 1, none":      {map[string]string{"proc/self/cgroup": v1 + "\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"nonsense":             {map[string]string{"proc/self/cgroup": "x\n::\n" + v2 + "\n", "sys/fs/cgroup/memory.max": "-5\n"}, 0},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got, err := cgroupMemory(root); err != nil || got != c.want {
			t.Errorf("%s: %d, %v, want %d", name, got, err, c.want)
		}
	}
}

func TestLimitMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	group := func(most int64) fstest.MapFS {
		return fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/memory.max": {Data: fmt.Appendln(nil, most)}}
	}
	for name, c := range map[string]struct {
		group    int64
		env      map[string]string
		live     int64
		limit    int64
		percent  int
		disabled bool
	}{
		"small group":   {group: 100 << 20, limit: (100 << 20) / 5 * 4, percent: gcPercent},
		"large group":   {group: 8 << 30, limit: thrifty, percent: gcPercent},
		"more lives":    {group: 8 << 30, live: 1 << 30, limit: 2 << 30, percent: gcPercent},
		"too much":      {group: 1 << 30, live: 1 << 30, limit: (1 << 30) / 5 * 4, percent: gcPercent},
		"no group":      {live: 1 << 30, limit: 2 << 30, percent: gcPercent},
		"GOMEMLIMIT":    {group: 100 << 20, env: map[string]string{"GOMEMLIMIT": "1GiB"}, limit: math.MaxInt64, percent: gcPercent, disabled: true},
		"GOGC":          {env: map[string]string{"GOGC": "50"}, limit: thrifty, percent: 100},
		"GOGC and more": {env: map[string]string{"GOGC": "50"}, live: 200 << 20, limit: 400 << 20, percent: 100},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(100)
		var log bytes.Buffer
		m := limitMemory(group(c.group), func(name string) string { return c.env[name] }, slog.New(slog.NewTextHandler(&log, nil)))
		if (m == nil) != c.disabled {
			t.Errorf("%s: to be run: %v", name, m != nil)
		}
		if m != nil && c.live > 0 {
			m.set(c.live)
		}
		percent := debug.SetGCPercent(100)
		if got := debug.SetMemoryLimit(-1); got != c.limit || percent != c.percent || strings.Count(log.String(), "memory limit is") != 1 {
			t.Errorf("%s: limit %d, percent %d, want %d and %d; log %s", name, got, percent, c.limit, c.percent, &log)
		}
	}
}
