package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"intumwa/configs"
	"intumwa/dispatcher"
	"intumwa/dispatcher/trial"
	"intumwa/sms"
)

type adminCarrierCmd struct {
	Words  adminCarrierWordsCmd  `cmd:"" help:"List states of receipts without a meaning, with the line to configure."`
	Retire adminCarrierRetireCmd `cmd:"" help:"A carrier closes: another one takes its numbers, or none."`
	Try    adminCarrierTryCmd    `cmd:"" help:"Bind to a carrier, send one message, which it bills, and show its answers."`
}

type adminCarrierTryCmd struct {
	Link   string        `required:"" aliases:"name" help:"A link of the configuration." placeholder:"NAME"`
	To     string        `aliases:"number" help:"A telephone that you own. Without it: bind only." placeholder:"NUMBER"`
	Sender string        `help:"The sender; test_sender when not given." placeholder:"NAME"`
	Text   string        `help:"The text." default:"Intumwa test message"`
	Wait   time.Duration `help:"How long to wait for the answer and the receipt." default:"2m"`
	Beside bool          `help:"Bind even while a dispatcher uses the link, which may lose its bind."`
}

// do tries the link and shows what was learnt.
func (c *adminCarrierTryCmd) do(ctx context.Context, o *operator) (any, error) {
	carrier, link := linkNamed(o.config, c.Link)
	if link == nil {
		return nil, fmt.Errorf("--link: the configuration has no link %q", c.Link)
	}
	options := trial.Options{Link: linkOf(carrier, link), Profile: profileOf(carrier), Sender: c.Sender, Text: c.Text,
		Wait: c.Wait}
	options.Link.Carrier, options.Link.Log = carrier.Name, slog.New(slog.DiscardHandler)
	if err := c.message(o.config, &options); err != nil {
		return nil, err
	}
	if options.To != "" && !options.Link.Mode.Submits() {
		return nil, fmt.Errorf("--to: %s only receives; try the link that submits", c.Link)
	}
	if err := c.idle(ctx, o); err != nil {
		return nil, err
	}
	if err := o.by(nil).NoteTrial(ctx, link.Name, options.To); err != nil {
		return nil, err
	}
	result, err := trial.Run(ctx, options)
	if err == nil && result.Receipt != nil && result.Receipt.Means != sms.Sent.String() {
		err = fmt.Errorf("the receipt says %s: the message was not delivered", result.Receipt.State)
	}
	return tried(carrier, link, &options, &result), err
}

// message sets what is sent.
func (c *adminCarrierTryCmd) message(config *configs.Config, options *trial.Options) error {
	if c.Wait < testSendLeast || c.Wait > testSendMost {
		return fmt.Errorf("--wait must be from %s to %s", testSendLeast, testSendMost)
	}
	if options.Sender == "" {
		options.Sender = config.TestSender
	}
	if !sms.ValidSender(options.Sender) {
		return fmt.Errorf("--sender: %q is not 1-11 alphanumeric characters", options.Sender)
	}
	if c.To == "" {
		return nil
	}
	number, ok := planOf(config).Parse(c.To)
	if !ok {
		return fmt.Errorf("--to: %q is not a valid Burundi (+257) number", c.To)
	}
	options.To = number
	return nil
}

// idle refuses a link that carries messages now: its carrier may allow one bind.
func (c *adminCarrierTryCmd) idle(ctx context.Context, o *operator) error {
	links, err := dispatcher.Links(ctx, o.pool)
	if err != nil || c.Beside {
		return err
	}
	for _, l := range links {
		if l.Link == c.Link && (l.Accepted > 0 || l.InFlight > 0) {
			return errors.New("a dispatcher carries messages over " + c.Link +
				" now, and its carrier may close that bind for a second one; --beside tries all the same")
		}
	}
	return nil
}

// linkNamed returns a link of the configuration and its carrier; nil if there is none.
func linkNamed(config *configs.Config, name string) (*configs.Carrier, *configs.Link) {
	for i := range config.Carriers {
		for j := range config.Carriers[i].Links {
			if config.Carriers[i].Links[j].Name == name {
				return &config.Carriers[i], &config.Carriers[i].Links[j]
			}
		}
	}
	return nil, nil
}

// tried is what a trial learnt.
func tried(carrier *configs.Carrier, link *configs.Link, options *trial.Options, r *trial.Result) deep {
	out := object{{"carrier", carrier.Name}, {"link", link.Name}, {"bind", options.Link.Mode.String()},
		{"system_id", link.SystemID},
		{"bound", r.Bound}, {"bound_after", r.BoundAfter}, {"smsc_version", r.SMSCVersion}}
	if options.To != "" {
		out = append(out, object{{"sender", options.Sender}, {"attempts", r.Attempts}, {"message_id", r.MessageID},
			{"receipt", r.Receipt},
			{"other_deliveries", r.Others}}...)
	}
	return deep{append(out, pair{"learnt", append([]string{}, r.Learnt...)})}
}
