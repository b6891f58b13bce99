package main

import (
	"fmt"
	"io"

	"intumwa/configs/importer"
)

type configImportCmd struct {
	From string `required:"" help:"Whose configuration it is." placeholder:"GATEWAY" enum:"kannel,jasmin"`
	File string `arg:"" help:"kannel.conf; for Jasmin a text of jCli: a script with smppccm -a, or what smppccm -s shows."`
}

// Run prints the proposal, and on stderr every line that it leaves out. It prints no password.
func (c *configImportCmd) Run(p *program) error {
	read := map[string]func(string) (*importer.Proposal, error){"kannel": importer.Kannel, "jasmin": importer.Jasmin}
	proposal, err := read[c.From](c.File)
	if err != nil {
		return err
	}
	for _, each := range proposal.Ignored {
		_, _ = fmt.Fprintf(p.stderr, "intumwa: not imported: %s\n", each)
	}
	for _, each := range proposal.Secrets {
		_, _ = fmt.Fprintf(p.stderr, "intumwa: set the variable %s\n", each)
	}
	_, err = io.WriteString(p.stdout, proposal.YAML())
	return err
}
