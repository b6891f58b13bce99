package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"

	"intumwa/tools/ebmssim"
)

// ebmsSimCmd simulates the eBMS of the tax office.
type ebmsSimCmd struct {
	Listen     string `help:"Address of the eBMS (/ebms_api/), of the page that shows what it received, and of its JSON: /invoices.json, /calls.json, /faults.json." default:"127.0.0.1:2783"`
	Username   string `help:"What a login must give." default:"ws000000000000"`
	Password   string `help:"Better in the variable: other users of the machine can read it here." env:"EBMS_SIM_PASSWORD" default:"demo"`
	Store      string `help:"File that keeps what was received; empty: memory." type:"path" placeholder:"FILE"`
	Cert       string `help:"PEM file of a certificate: the eBMS speaks TLS." type:"existingfile" placeholder:"FILE"`
	Key        string `help:"PEM file of its key." type:"existingfile" placeholder:"FILE"`
	Faults     string `help:"File with a JSON object of the faults to begin with, e.g. {\"slow\": \"5s\"}; POST /faults changes them." type:"existingfile" placeholder:"FILE"`
	ListFaults bool   `help:"Print the table of faults in Markdown and end."`
}

// Run serves until ctx ends.
func (c *ebmsSimCmd) Run(ctx context.Context, out output) (err error) {
	if c.ListFaults {
		_, err := io.WriteString(out.stdout, ebmssim.FaultsTable())
		return err
	}
	log := slog.New(slog.NewTextHandler(out.stderr, nil))
	var faults ebmssim.Faults
	if err := readFaults(c.Faults, &faults); err != nil {
		return err
	}
	sim, err := ebmssim.New(ebmssim.Options{Username: c.Username, Password: c.Password, Store: c.Store, Faults: faults,
		Log: log})
	if err != nil {
		return err
	}
	defer func() { _ = sim.Close() }()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	defer listener.Close()
	if c.Cert != "" || c.Key != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return fmt.Errorf("--cert and --key: %w", err)
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	}
	log.Info("eBMS listens", "address", listener.Addr().String(), "tls", c.Cert != "")
	return sim.Serve(ctx, listener)
}
