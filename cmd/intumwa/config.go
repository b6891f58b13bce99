package main

import (
	"fmt"

	"intumwa/configs"
)

type configCmd struct {
	Check  configCheckCmd  `cmd:"" help:"Say every mistake in the configuration with its key path."`
	Sample configSampleCmd `cmd:"" help:"Print a configuration with every key, its default and what it is for."`
}

type configCheckCmd struct{}

// Run prints every mistake and what looks like one.
func (configCheckCmd) Run(p *program) error {
	c, err := p.checkedConfig()
	if err != nil {
		return err
	}
	for _, w := range c.Warnings() {
		_, _ = fmt.Fprintf(p.stderr, "intumwa: warning: %s\n", w)
	}
	_, err = fmt.Fprintf(p.stdout, "%s is sound\n", p.configPath)
	return err
}

type configSampleCmd struct{}

// Run prints the sample.
func (configSampleCmd) Run(p *program) error {
	_, err := p.stdout.Write(configs.Sample)
	return err
}
