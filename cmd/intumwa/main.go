// Command intumwa is the whole product in one binary: the gateway (serve) and its administration (admin).
// Development tools are in cmd/intumwa-dev.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"intumwa/configs"
	"intumwa/internal/postgres"
)

func main() {
	log.SetOutput(io.Discard) // for net/http's complaints about unsolicited responses; our lines go through slog
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitOK    = 0
	exitError = 1 // the command failed; the reason is on stderr
	exitUsage = 2 // invalid command line
)

// commands is the table of subcommands.
type commands struct {
	Config string `help:"Configuration file; ${default} when not given." default:"/etc/intumwa/intumwa.yaml" env:"INTUMWA_CONFIG" placeholder:"FILE" type:"path"`

	Serve      serveCmd      `cmd:"" help:"Serve: accept messages, send them to carriers, report to customers."`
	Migrate    migrateCmd    `cmd:"" help:"Bring the database's schema to this binary's version."`
	ConfigFile configCmd     `cmd:"" name:"config" help:"Check the configuration, or print a sample."`
	Admin      adminCmd      `cmd:"" help:"Provision users, companies and senders; look at messages and links."`
	CarrierSim carrierSimCmd `cmd:"" name:"carrier-sim" passthrough:"" help:"Play a carrier's SMSC, for development."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
	Describe   describeCmd   `cmd:"" hidden:"" help:"Print the manual page or the shell completion, for packages."`
}

// program is what a command needs beside its flags.
type program struct {
	configPath string
	env        []string
	loaded     *configs.Config // by config; nil: not yet
	stdin      io.Reader
	stdout     io.Writer
	stderr     io.Writer
}

// run executes one command line and returns its exit code. The command ends when ctx does.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var table commands
	left := -1 // kong's exit code for --help
	parser, err := kong.New(&table,
		kong.Name("intumwa"),
		kong.Description("A carrier-facing SMS gateway."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { left = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.PostBuild(listWords),
	)
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	command, err := parser.Parse(args)
	switch {
	case left >= 0:
		return left
	case err != nil:
		return fail(stderr, exitUsage, fmt.Errorf("%w (see intumwa --help)", err))
	}
	p := &program{configPath: table.Config, env: os.Environ(), stdin: stdin, stdout: stdout, stderr: stderr}
	if work, ok := command.Selected().Target.Addr().Interface().(adminWork); ok {
		err = table.Admin.run(ctx, p, work)
	} else {
		command.BindTo(ctx, (*context.Context)(nil))
		command.Bind(p)
		err = command.Run()
	}
	if err != nil {
		return fail(stderr, exitError, err)
	}
	return exitOK
}

// listWords adds the permitted words of flags to their texts, unless these have them.
func listWords(app *kong.Kong) error {
	eachCommand(app.Model.Node, nil, nil, func(_ *kong.Node, _ []string, flags []*kong.Flag) {
		for _, flag := range flags {
			words := slices.DeleteFunc(flag.EnumSlice(), func(word string) bool { return word == "" })
			if slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(flag.Help, word) }) {
				flag.Help += " One of: " + strings.Join(words, ", ") + "."
			}
		}
	})
	return nil
}

func fail(stderr io.Writer, code int, err error) int {
	_, _ = fmt.Fprintf(stderr, "intumwa: %v\n", lines(err))
	return code
}

// config loads the configuration for a command, without a role.
func (p *program) config() (*configs.Config, error) {
	if p.loaded == nil {
		c, err := p.checkedConfig()
		if err != nil {
			return nil, err
		}
		p.loaded = c
	}
	return p.loaded, nil
}

// checkedConfig loads the configuration for these roles. The error names every mistake.
func (p *program) checkedConfig(roles ...string) (*configs.Config, error) {
	c, err := configs.Load(p.configPath, p.env)
	var problems configs.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, err
	}
	if c == nil { // not YAML
		return nil, err
	}
	problems = append(problems, c.Check(roles...)...)
	if len(problems) > 0 && p.configPath == "" {
		return nil, fmt.Errorf("no configuration file is read, because --config or INTUMWA_CONFIG is empty:\n%w", problems)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("the configuration %s is not sound:\n%w", p.configPath, problems)
	}
	return c, nil
}

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version = "dev"

type versionCmd struct{}

// Run prints the version, the commit and the Go version.
func (versionCmd) Run(p *program) error {
	_, err := fmt.Fprintf(p.stdout, "intumwa %s%s %s %s/%s\n",
		version, commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// commit is the abbreviated commit in parentheses, or empty if the build has none.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	if revision == "" {
		return ""
	}
	return " (" + revision + dirty + ")"
}

type migrateCmd struct{}

// Run applies the missing migrations.
func (migrateCmd) Run(ctx context.Context, p *program) error {
	c, err := p.config()
	if err != nil {
		return err
	}
	versions, err := postgres.Migrate(ctx, string(c.Database.URL))
	if err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	result := fmt.Sprintf("the schema is migrated to version %d", versions[1])
	if versions[0] == versions[1] {
		result = fmt.Sprintf("nothing to do: the schema is at version %d already", versions[1])
	}
	_, err = fmt.Fprintln(p.stdout, result)
	return err
}
