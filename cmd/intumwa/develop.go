package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// carrierSimCmd replaces this process with intumwa-dev carrier-sim.
type carrierSimCmd struct {
	Arguments []string `arg:"" optional:"" help:"intumwa-dev carrier-sim --help lists them."`
}

// Run returns only on failure.
func (c *carrierSimCmd) Run(p *program) error {
	const name = "intumwa-dev"
	var path string
	if self, err := os.Executable(); err == nil {
		path, _ = exec.LookPath(filepath.Join(filepath.Dir(self), name)) // "" if absent
	}
	if path == "" {
		var err error
		if path, err = exec.LookPath(name); err != nil {
			return fmt.Errorf("the carrier simulator is in %s, which is neither beside this program nor in PATH: make build, "+
				"or go build ./cmd/%s, makes it", name, name)
		}
	}
	arguments := append([]string{name, "carrier-sim"}, c.Arguments...)
	if err := syscall.Exec(path, arguments, p.env); err != nil { //nolint:gosec // the operator's own arguments
		return fmt.Errorf("running %s: %w", path, err)
	}
	return nil
}
