package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts/keys"
	"intumwa/configs"
	"intumwa/dispatcher/settling"
	"intumwa/intake"
	"intumwa/internal/queue"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/sms"
)

const (
	testSendLook  = 200 * time.Millisecond // between two looks at the message
	testSendLeast = time.Second            // minimum wait and validity
	testSendMost  = time.Hour              // maximum
	testSendRest  = time.Minute            // validity after the wait, in which the command can still withdraw the message
)

type adminTestSendCmd struct {
	To      string        `required:"" aliases:"number" help:"A telephone that you own." placeholder:"NUMBER"`
	Sender  string        `help:"The sender; test_sender when not given." placeholder:"NAME"`
	Text    string        `help:"The text." default:"Intumwa test message"`
	Carrier string        `help:"The carrier; the number's when not given."`
	Wait    time.Duration `help:"How long to wait for the receipt, before it is withdrawn." default:"2m"`
}

// testSend is the result of a test message.
type testSend struct{ object }

// do sends an SMS through the running gateway and waits for its receipt. It costs no
// credits.
func (c *adminTestSendCmd) do(ctx context.Context, o *operator) (any, error) {
	own, err := c.message(o.config)
	if err != nil {
		return nil, err
	}
	if err := o.by(nil).NoteTestSend(ctx, own.Number, c.Carrier, own.Sender); err != nil {
		return nil, err
	}
	id, err := o.sendOwn(ctx, own)
	if err != nil {
		return nil, fmt.Errorf("sending: %w", err)
	}
	_, _ = fmt.Fprintf(o.stderr, "intumwa: %s is accepted; waiting up to %s for its receipt\n", id, c.Wait)
	return o.awaitTest(ctx, id, c.Wait)
}

// message is the requested message, or the reason why it cannot be sent.
func (c *adminTestSendCmd) message(config *configs.Config) (intake.Own, error) {
	number, ok := planOf(config).Parse(c.To)
	_, segments := sms.Count(c.Text)
	switch named := func(carrier configs.Carrier) bool { return carrier.Name == c.Carrier }; {
	case !ok:
		return intake.Own{}, fmt.Errorf("--to: %q is not a valid Burundi (+257) number", c.To)
	case c.Carrier != "" && !slices.ContainsFunc(config.Carriers, named):
		return intake.Own{}, fmt.Errorf("--carrier: the configuration has no carrier %q", c.Carrier)
	case c.Sender != "" && !sms.ValidSender(c.Sender):
		return intake.Own{}, fmt.Errorf("--sender: %q is not 1-11 alphanumeric characters", c.Sender)
	case segments < 1 || segments > config.Messages.MaxSegments:
		return intake.Own{}, fmt.Errorf("--text: it has %d segments, and must have 1 to %d", segments,
			config.Messages.MaxSegments)
	case c.Wait < testSendLeast || c.Wait > testSendMost:
		return intake.Own{}, fmt.Errorf("--wait must be from %s to %s", testSendLeast, testSendMost)
	}
	return intake.Own{Number: number, Carrier: c.Carrier, Sender: c.Sender, Text: c.Text, Life: c.Wait + testSendRest}, nil
}

// sendOwn accepts a message as a gateway with this configuration does.
func (o *operator) sendOwn(ctx context.Context, own intake.Own) (ulid.ULID, error) {
	pool, err := o.busyPool(ctx)
	if err != nil {
		return ulid.ULID{}, err
	}
	defer pool.Close()
	rdb, waiting, err := openRedis(&o.config.Redis, 1)
	if err != nil {
		return ulid.ULID{}, fmt.Errorf("opening redis: %w", err)
	}
	defer func() { _ = errors.Join(rdb.Close(), waiting.Close()) }()
	routes, err := routesOf(o.config)
	if err != nil {
		return ulid.ULID{}, err
	}
	in := intake.New(pool, keys.NewHolders(pool, keys.Options{}), o.testNumbers(), messages.New(pool),
		queue.New(rdb, queue.Options{Prefix: o.config.Redis.Prefix, Waiting: waiting}), routes,
		intake.Options{TestSender: o.config.TestSender})
	if err := in.ReadRetired(ctx); err != nil {
		return ulid.ULID{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = in.Run(ctx) // it ends with ctx
	}()
	defer func() { cancel(); <-ended }() // after the push to Redis
	return in.SendOwn(ctx, own)
}

// awaitTest shows a test message once it is final, or after the wait. Any outcome except delivery is an error.
func (o *operator) awaitTest(ctx context.Context, id ulid.ULID, wait time.Duration) (any, error) {
	store, over := lookup.New(o.pool), time.After(wait)
	for late := false; ; {
		r, err := store.OperatorsByULID(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("message %s: %w", id, err)
		}
		history, err := store.HistoryOf(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		moments := lookup.Timeline(r, history)
		switch last := moments[len(moments)-1]; {
		case r.Status == sms.Sent:
			return testSendOf(r, moments), nil
		case r.Status == sms.Failed:
			return testSendOf(r, moments), fmt.Errorf("the message failed: %s", r.FailureReason)
		case late && len(history.Segments) == 0:
			return testSendOf(r, moments), o.withdraw(
				ctx, r.ID, fmt.Errorf("no carrier took the message within %s: see `intumwa admin status` and `intumwa admin links`",
					wait))
		case late:
			return testSendOf(r, moments), fmt.Errorf("no receipt within %s, the last stage is %q: see "+
				"docs/runbooks/no-receipts.md", wait, last.Event)
		}
		select {
		case <-ctx.Done():
			return nil, o.withdraw(ctx, r.ID, ctx.Err())
		case <-over:
			late = true
		case <-time.After(testSendLook):
		}
	}
}

// withdraw cancels a test message that no carrier has, and returns why. Otherwise it would expire, as a customer's
// message does when a carrier has been away for its whole validity, and raise that alert.
func (o *operator) withdraw(ctx context.Context, id int64, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	pool, err := o.busyPool(ctx)
	if err != nil {
		return errors.Join(why, err)
	}
	defer pool.Close()
	_, err = settling.Cancel(ctx, pool, messages.New(pool), o.openWebhooks(), messages.Queued{Message: id}, nil)
	return errors.Join(why, err)
}

func testSendOf(r lookup.Record, moments []lookup.Moment) testSend {
	stages := []object{}
	for _, m := range moments {
		stages = append(stages, object{{"after", max(0, m.At.Sub(r.CreatedAt)).Seconds()}, {"at", m.At}, {"stage", m.Event},
			{"detail", m.Detail}})
	}
	return testSend{object{{"id", r.ULID}, {"message_id", r.ID}, {"to", string(r.Number)}, {"sender", r.Sender},
		{"carrier", r.Carrier},
		{"status", r.Status.String()}, {"failure_reason", r.FailureReason}, {"stages", stages}}}
}

// human prints one line per stage.
func (s testSend) human(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, p := range s.object {
		if stages, ok := p.value.([]object); ok {
			for _, stage := range stages {
				at, _ := stage[1].value.(time.Time)
				_, _ = fmt.Fprintf(t, "%s\t%.1f s\t%s\t%s\n", at.Format(time.RFC3339), stage[0].value, cell(stage[2].value),
					cell(stage[3].value))
			}
		}
	}
	return t.Flush()
}
