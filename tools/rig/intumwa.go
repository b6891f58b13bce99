package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Intumwa is the built program with its configuration.
type Intumwa struct{ Binary, Config string }

// Run runs a command and returns its output.
func (i Intumwa) Run(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, i.Binary, append(args, "--config", i.Config)...) //nolint:gosec // our own program
	cmd.Env, cmd.Stdin = Environment(), strings.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("intumwa %s: %w", strings.Join(args[:min(len(args), 3)], " "), err)
	}
	return out, nil
}

// Company makes a company with an approved sender, and a webhook endpoint if hook is not empty. It returns its user's
// token.
func (i Intumwa) Company(ctx context.Context, email, sender, hook string) (token string, err error) {
	admin := func(stdin string, args ...string) map[string]any {
		answer := map[string]any{}
		if err == nil {
			var out []byte
			if out, err = i.Run(ctx, stdin, append(append([]string{"admin"}, args...), "--json")...); err == nil {
				decoder := json.NewDecoder(bytes.NewReader(out))
				decoder.UseNumber()
				err = decoder.Decode(&answer)
			}
		}
		return answer
	}
	admin("a password of no use\n", "user", "create", "--email", email, "--name", sender, "--password-stdin")
	id := fmt.Sprint(admin("", "company", "create", "--owner", email, "--name", sender, "--approved", "--verified",
		"--credits", "1000000000")["company_id"])
	admin("", "sender", "create", "--company", id, "--name", sender, "--approved")
	if hook != "" {
		admin("", "webhook", "set", "--company", id, "--url", hook, "--active=true")
	}
	token, _ = admin("", "token", "create", "--user", email, "--name", sender)["token"].(string)
	return token, err
}
