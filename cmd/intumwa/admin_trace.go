package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

type adminLinkTraceCmd struct {
	Name    string `required:"" help:"The link."`
	Seconds int    `default:"30" help:"How long."`
	Ops     string `help:"Operators' listener of the process that holds the link, e.g. http://10.0.0.7:9090; that of this configuration when not given." placeholder:"URL"`
}

// Run prints the PDUs of a link as they pass, one JSON object a line, until
// the time is up or ctx ends.
func (c *adminLinkTraceCmd) Run(ctx context.Context, p *program) error {
	base := c.Ops
	if base == "" {
		config, err := p.config()
		if err != nil {
			return err
		}
		base = "http://" + reachable(config.Ops.Listen)
	}
	target := strings.TrimSuffix(base, "/") + "/debug/links/" + url.PathEscape(c.Name) + "/trace?seconds=" + strconv.Itoa(c.Seconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return fmt.Errorf("--ops %s: %w", c.Ops, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking the process that holds the link: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var answer struct{ Reason string }
		_ = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&answer) // without a reason the status tells
		return fmt.Errorf("tracing %s: %s %s", c.Name, response.Status, answer.Reason)
	}
	if _, err := io.Copy(p.stdout, response.Body); err != nil && ctx.Err() == nil {
		return fmt.Errorf("reading the trace: %w", err)
	}
	return nil
}

// reachable is a listener's address as a client on its host dials it.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return listen
}
