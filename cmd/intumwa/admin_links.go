package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/dispatcher"
)

// reportWithin is how long resume waits for the dispatcher that holds the link. Its next
// heartbeat (1 s) applies the change, the one after reports it.
const reportWithin = 5 * time.Second

type adminLinksCmd struct{}

// do lists the links as last reported by their dispatchers.
func (adminLinksCmd) do(ctx context.Context, o *operator) (any, error) {
	return done(dispatcher.Links(ctx, o.pool))
}

type adminLinkCmd struct {
	Pause  adminLinkPauseCmd  `cmd:"" help:"Stop submitting over a link; messages in flight are finished."`
	Resume adminLinkResumeCmd `cmd:"" help:"Submit over a link again."`
	Trace  adminLinkTraceCmd  `cmd:"" help:"Show the PDUs of a link for a while; numbers are masked, texts are lengths."`
}

type adminLinkPauseCmd struct {
	Name string `required:"" aliases:"link" help:"The link."`
}

type adminLinkResumeCmd struct {
	Name string `required:"" aliases:"link" help:"The link."`
}

// do pauses a link, whichever process holds it.
func (c *adminLinkPauseCmd) do(ctx context.Context, o *operator) (any, error) {
	state, err := o.by(nil).SetPaused(ctx, c.Name, true)
	return done(linkSet{c.Name, state}, err)
}

// do resumes a link and shows its reported state.
func (c *adminLinkResumeCmd) do(ctx context.Context, o *operator) (any, error) {
	if _, err := o.by(nil).SetPaused(ctx, c.Name, false); err != nil {
		return nil, err
	}
	state, err := resumed(ctx, o.pool, c.Name, reportWithin)
	if err != nil {
		return nil, err
	}
	if state == statePaused {
		_, _ = fmt.Fprintf(o.stderr, "intumwa: %s is to be resumed, and its dispatcher has not reported yet that it is\n",
			c.Name)
	}
	return linkSet{c.Name, state}, nil
}

type linkSet struct {
	Link  string `json:"link"`
	State string `json:"state"`
}

const statePaused = "paused"

// resumed waits until the link's reported state is no longer paused, or until patience
// ends, and returns the state.
func resumed(ctx context.Context, pool *pgxpool.Pool, link string, patience time.Duration) (string, error) {
	over := time.After(patience)
	for {
		links, err := dispatcher.Links(ctx, pool)
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(links, func(l dispatcher.LinkState) bool { return l.Link == link })
		if i < 0 {
			return "", fmt.Errorf("%s: %w", link, dispatcher.ErrNoLink) // removed from the configuration meanwhile
		}
		if links[i].State != statePaused {
			return links[i].State, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-over:
			return links[i].State, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

type adminLinkTraceCmd struct {
	Name    string `required:"" aliases:"link" help:"The link."`
	Seconds int    `default:"30" help:"How long."`
	Ops     string `help:"Operators' listener of the process with the link. Default: as configured." placeholder:"URL"`
}

// Run prints the PDUs of a link as JSON lines until the time is up or ctx ends.
func (c *adminLinkTraceCmd) Run(ctx context.Context, p *program) error {
	return traced{"links", c.Name, c.Seconds, c.Ops, "dispatcher"}.run(ctx, p)
}

// traced is a request for a trace to one process.
type traced struct {
	kind, name string // of its path
	seconds    int
	ops        string // "": of the configuration
	role       string // of the processes that have it
}

func (t traced) run(ctx context.Context, p *program) error {
	base := t.ops
	if base == "" {
		config, err := p.config()
		if err != nil {
			return err
		}
		base = "http://" + reachable(config.Ops.Listen)
	}
	if found, err := t.print(ctx, p, base); err != nil && !found {
		return fmt.Errorf("tracing %s: %w; --ops names the operators' listener of the process that holds it", t.name, err)
	} else if err != nil {
		return err
	}
	return nil
}

// print reads from one process. found is true if that process holds what is traced.
func (t traced) print(ctx context.Context, p *program, base string) (found bool, err error) {
	target := strings.TrimSuffix(base, "/") + "/debug/" + t.kind + "/" + url.PathEscape(t.name) + "/trace?seconds=" +
		strconv.Itoa(t.seconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return false, fmt.Errorf("--ops %s: %w", t.ops, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, fmt.Errorf("requesting a trace: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		var answer struct{ Reason string }
		// without a reason the HTTP status is shown
		_ = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&answer)
		if answer.Reason == "" && response.StatusCode == http.StatusNotFound {
			answer.Reason = "it serves no " + t.kind + ": not the role " + t.role + ", or not this gateway"
		}
		return false, fmt.Errorf("%s answers %s %s", base, response.Status, answer.Reason)
	}
	if _, err := io.Copy(p.stdout, response.Body); err != nil && ctx.Err() == nil {
		return true, fmt.Errorf("reading the trace: %w", err)
	}
	return true, nil
}

// reachable turns a listen address into one to dial on the same host.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return listen
}
