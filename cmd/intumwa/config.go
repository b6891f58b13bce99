package main

import (
	"context"
	"fmt"

	"intumwa/configs"
)

type configCmd struct {
	Check  configCheckCmd  `cmd:"" help:"Say every mistake in the configuration with its key path."`
	Sample configSampleCmd `cmd:"" help:"Print a configuration with every key, its default and what it is for."`
}

type configCheckCmd struct {
	Connect bool `help:"Also try whether PostgreSQL, Redis, the mail server and the SMSCs can be reached from here (TCP and TLS; nothing is bound)."`

	Roles []string `help:"For a process with these roles, which may lack the others' secrets. All when not given." placeholder:"ROLE" enum:"api,dispatcher,webhooks,dashboard"`
}

// Run prints every mistake and what looks like one, and with --connect who can be reached. It prints no value that may be
// a secret.
func (check *configCheckCmd) Run(ctx context.Context, p *program) error {
	if len(check.Roles) == 0 {
		check.Roles = configs.Roles
	}
	c, err := p.checkedConfig(check.Roles...)
	if err != nil {
		return err
	}
	for _, w := range c.Warnings(check.Roles...) {
		_, _ = fmt.Fprintf(p.stderr, "intumwa: warning: %s\n", w)
	}
	if _, err := fmt.Fprintf(p.stdout, "%s is sound\n", p.configPath); err != nil || !check.Connect {
		return err
	}
	return check.connect(ctx, p, c)
}

type configSampleCmd struct{}

// Run prints the sample.
func (configSampleCmd) Run(p *program) error {
	_, err := p.stdout.Write(configs.Sample)
	return err
}
