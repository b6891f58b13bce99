package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

type adminLinkTraceCmd struct {
	Name    string `required:"" help:"The link."`
	Seconds int    `default:"30" help:"How long."`
	Ops     string `help:"Operators' listener of the process that holds the link, e.g. http://10.0.0.7:9090; that of this configuration when not given." placeholder:"URL"`
}

// Run prints the PDUs of a link as they pass, one JSON object a line, until
// the time is up or ctx ends. Without --ops it asks the processes that this
// configuration has on this machine, a dispatcher alone first.
func (c *adminLinkTraceCmd) Run(ctx context.Context, p *program) error {
	bases := []string{c.Ops}
	if c.Ops == "" {
		config, err := p.config()
		if err != nil {
			return err
		}
		bases = nil
		for _, listen := range []string{config.Ops.ListenFor("dispatcher"), config.Ops.Listen} {
			if base := "http://" + reachable(listen); !slices.Contains(bases, base) {
				bases = append(bases, base)
			}
		}
	}
	var failed []error
	for _, base := range bases {
		found, err := c.trace(ctx, p, base)
		if err == nil || found {
			return err
		}
		failed = append(failed, err)
	}
	return fmt.Errorf("tracing %s: %w", c.Name, errors.Join(append(failed, errors.New("--ops names the operators' listener of the process that holds it"))...))
}

// trace asks one process; found says that it began to answer.
func (c *adminLinkTraceCmd) trace(ctx context.Context, p *program, base string) (found bool, err error) {
	target := strings.TrimSuffix(base, "/") + "/debug/links/" + url.PathEscape(c.Name) + "/trace?seconds=" + strconv.Itoa(c.Seconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return false, fmt.Errorf("--ops %s: %w", c.Ops, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, fmt.Errorf("asking a process for it: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var answer struct{ Reason string }
		_ = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&answer) // without a reason the status tells
		if answer.Reason == "" && response.StatusCode == http.StatusNotFound {
			answer.Reason = "it serves no links: not the role dispatcher, or not this gateway"
		}
		return false, fmt.Errorf("%s says %s %s", base, response.Status, answer.Reason)
	}
	if _, err := io.Copy(p.stdout, response.Body); err != nil && ctx.Err() == nil {
		return true, fmt.Errorf("reading the trace: %w", err)
	}
	return true, nil
}

// reachable is a listener's address as a client on its host dials it.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return listen
}
