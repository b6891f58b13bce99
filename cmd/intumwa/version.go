package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version = "dev"

type versionCmd struct{}

// Run prints the version, the commit it was built from and Go's version.
func (versionCmd) Run(p *program) error {
	_, err := fmt.Fprintf(p.stdout, "intumwa %s%s %s %s/%s\n",
		version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// commit is the abbreviated commit in parentheses, empty when the build does not know.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	if revision == "" {
		return ""
	}
	return " (" + revision + dirty + ")"
}
