package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/configs"
	"intumwa/dispatcher"
	"intumwa/messages"
	"intumwa/smpp"
	"intumwa/sms"
)

// newLog makes the process's log. What a terminal would obey is escaped in it: by
// the text handler, which quotes what it cannot print, and by plainJSON.
func newLog(w io.Writer, c configs.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level.Is}
	if c.Format.Is == "json" {
		return slog.New(slog.NewJSONHandler(plainJSON{w}, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// lookupConnections is how many connections look-ups have, and so how many of
// them there are at once: one a CPU and two at least, if nothing else is said.
func lookupConnections(c *configs.Database) int32 {
	if c.LookupConnections > 0 {
		return int32(c.LookupConnections)
	}
	return int32(max(2, runtime.GOMAXPROCS(0)))
}

// planOf is which numbers are valid: the national plan and what carriers list.
func planOf(c *configs.Config) *sms.Plan {
	var prefixes []string
	for _, carrier := range c.Carriers {
		prefixes = append(prefixes, carrier.Prefixes...)
		prefixes = append(prefixes, carrier.NumberOverrides...)
	}
	return sms.NewPlan(prefixes...)
}

func routesOf(c *configs.Config) (*sms.Routes, error) {
	routes := make([]sms.Route, len(c.Carriers))
	for i, carrier := range c.Carriers {
		routes[i] = sms.Route{Carrier: carrier.Name, Prefixes: carrier.Prefixes, Numbers: carrier.NumberOverrides, Default: carrier.Default}
	}
	table, err := sms.NewRoutes(routes)
	if err != nil {
		return nil, fmt.Errorf("carriers: %w", err)
	}
	return table, nil
}

// namesOf looks up messages' ULIDs for the log.
func namesOf(store *messages.Store) func(context.Context, int64) string {
	return func(ctx context.Context, id int64) string {
		names, err := store.ULIDs(ctx, []int64{id})
		if name, known := names[id]; err == nil && known {
			return name.String()
		}
		return ""
	}
}

func dispatcherOptions(c *configs.Config, log *slog.Logger, metrics prometheus.Registerer) dispatcher.Options {
	options := dispatcher.Options{Validity: c.Messages.Validity, Refund: c.Billing.Refund.Is,
		ReceiptRetention: c.Retention.Receipts, InboundRetention: c.Messages.InboundRetention,
		MessageRetention: c.Retention.Messages, BodyRetention: c.Retention.Bodies, Log: log, Metrics: metrics}
	for i := range c.Carriers {
		options.Carriers = append(options.Carriers, carrierOf(&c.Carriers[i]))
	}
	return options
}

// carrierOf translates a checked configuration.
func carrierOf(c *configs.Carrier) dispatcher.Carrier {
	carrier := dispatcher.Carrier{
		Name: c.Name, Confirm: c.Confirm.Is, OnReceiptTimeout: sms.Status(c.OnReceiptTimeout.Is), ReceiptTimeout: c.ReceiptTimeout,
		IDFormat: c.MessageIDFormat.Is, States: map[string]sms.Status{}, Concat: c.Concat.Is, Alphabet: c.Alphabet.Is,
		Validity: c.ValidityPeriod.Is, SourceTON: uint8(c.SourceTON), SourceNPI: uint8(c.SourceNPI),
		DestTON: uint8(c.DestTON), DestNPI: uint8(c.DestNPI), ServiceType: c.ServiceType,
		NoReference: !c.UserReference, OnAmbiguous: c.OnAmbiguous.Is, RetryMin: c.RetryMin, RetryMax: c.RetryMax, Failover: c.Failover, FailoverAfter: c.FailoverAfter,
		MaxUnmatched: c.MaxUnmatched, MaxInbound: c.MaxInbound,
	}
	for state, meaning := range c.ReceiptStates {
		carrier.States[state] = sms.Status(meaning.Is)
	}
	tlvs, _ := c.StaticTLVs() // checked by configs, as are the classes and the TLS files
	for _, tlv := range tlvs {
		carrier.TLVs = append(carrier.TLVs, smpp.TLV(tlv))
	}
	carrier.Classes, _ = c.Classes()
	for i := range c.Links {
		l := &c.Links[i]
		tls, _ := l.TLSConfig()
		carrier.Links = append(carrier.Links, dispatcher.Link{Weight: l.Weight, Binds: l.Binds, Options: smpp.Options{
			Name: l.Name, Address: string(l.Address), TLS: tls, Mode: l.Bind.Is, SystemID: l.SystemID, Password: string(l.Password),
			SystemType: l.SystemType, Window: l.Window, TPS: float64(l.TPS), EnquireLink: l.EnquireLink, EnquireTimeout: l.EnquireTimeout,
			ResponseTimeout: l.ResponseTimeout, DialTimeout: l.ConnectTimeout, BindTimeout: l.BindTimeout, UnknownHold: c.UnknownHold,
			DrainTimeout: 4 * time.Second, UnbindTimeout: time.Second,
		}})
	}
	return carrier
}
