// Command intumwa-dev runs the development tools: a carrier simulator, a mail catcher and a webhook receiver. No
// installation needs it.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type commands struct {
	CarrierSim  carrierSimCmd  `cmd:"" name:"carrier-sim" help:"Play a carrier's SMSC."`
	WebhookEcho webhookEchoCmd `cmd:"" name:"webhook-echo" help:"Play a customer's webhook endpoint."`
	MailCatcher mailCatcherCmd `cmd:"" name:"mail-catcher" help:"Play a mail server."`
	EBMSSim     ebmsSimCmd     `cmd:"" name:"ebms-sim" help:"Play the eBMS of the tax office (OBR)."`
}

// output is where a command prints.
type output struct{ stdout, stderr io.Writer }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	command := kong.Parse(new(commands), kong.Name("intumwa-dev"), kong.Description("Development tools of Intumwa."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(output{os.Stdout, os.Stderr})
	command.FatalIfErrorf(command.Run())
}
