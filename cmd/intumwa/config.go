package main

import (
	"fmt"

	"intumwa/configs"
)

type configCmd struct {
	Check  configCheckCmd  `cmd:"" help:"Say every mistake in the configuration with its key path."`
	Sample configSampleCmd `cmd:"" help:"Print a configuration with every key, its default and what it is for."`
}

type configCheckCmd struct {
	Roles []string `help:"For a process with these roles, which may lack the others' secrets. All when not given." placeholder:"ROLE" enum:"api,dispatcher,webhooks,dashboard"`
}

// Run prints every mistake and what looks like one. It prints no value that may be a secret.
func (check *configCheckCmd) Run(p *program) error {
	if len(check.Roles) == 0 {
		check.Roles = configs.Roles
	}
	c, err := p.checkedConfig(check.Roles...)
	if err != nil {
		return err
	}
	for _, w := range c.WarningsFor(check.Roles...) {
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
