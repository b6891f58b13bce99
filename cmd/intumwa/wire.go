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
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // checked by configs
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
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

// The words of the configuration and what they are to the dispatcher.
var (
	confirms   = map[string]dispatcher.Confirm{"receipt": dispatcher.ConfirmByReceipt, "submit": dispatcher.ConfirmBySubmit}
	idFormats  = map[string]dispatcher.IDFormat{"auto": dispatcher.IDAuto, "same": dispatcher.IDSame, "hex_to_decimal": dispatcher.IDHexToDecimal, "decimal_to_hex": dispatcher.IDDecimalToHex}
	concats    = map[string]dispatcher.Concat{"udh8": dispatcher.ConcatUDH8, "udh16": dispatcher.ConcatUDH16, "sar": dispatcher.ConcatSAR, "payload": dispatcher.ConcatPayload}
	alphabets  = map[string]dispatcher.Alphabet{"gsm7": dispatcher.AlphabetGSM7, "latin1": dispatcher.AlphabetLatin1, "ascii": dispatcher.AlphabetASCII}
	validities = map[string]dispatcher.Validity{"relative": dispatcher.ValidityRelative, "absolute": dispatcher.ValidityAbsolute, "none": dispatcher.ValidityNone}
	ambiguous  = map[string]dispatcher.Ambiguous{"resend": dispatcher.AmbiguousResend, "hold": dispatcher.AmbiguousHold, "fail": dispatcher.AmbiguousFail}
	refunds    = map[string]dispatcher.Refund{"unsubmitted": dispatcher.RefundUnsubmitted, "failed": dispatcher.RefundFailed, "never": dispatcher.RefundNever}
	states     = map[string]sms.Status{"sent": sms.Sent, "failed": sms.Failed, "none": sms.Pending}
	classes    = map[string]smpp.Class{"throttled": smpp.ClassThrottled, "temporary": smpp.ClassTemporary, "permanent": smpp.ClassPermanent, "configuration": smpp.ClassConfiguration}
	bindModes  = map[string]smpp.BindMode{"transceiver": smpp.Transceiver, "transmitter_receiver": smpp.TransmitterReceiver}
)

func dispatcherOptions(c *configs.Config, log *slog.Logger, metrics prometheus.Registerer) dispatcher.Options {
	options := dispatcher.Options{Validity: c.Messages.Validity, Refund: refunds[c.Billing.Refund],
		ReceiptRetention: c.Messages.ReceiptRetention, InboundRetention: c.Messages.InboundRetention, Log: log, Metrics: metrics}
	for i := range c.Carriers {
		options.Carriers = append(options.Carriers, carrierOf(&c.Carriers[i]))
	}
	return options
}

// carrierOf translates a checked configuration.
func carrierOf(c *configs.Carrier) dispatcher.Carrier {
	carrier := dispatcher.Carrier{
		Name: c.Name, Confirm: confirms[c.Confirm], OnReceiptTimeout: states[c.OnReceiptTimeout], ReceiptTimeout: c.ReceiptTimeout,
		IDFormat: idFormats[c.MessageIDFormat], States: map[string]sms.Status{}, Concat: concats[c.Concat], Alphabet: alphabets[c.Alphabet],
		Validity: validities[c.ValidityPeriod], SourceTON: uint8(c.SourceTON), SourceNPI: uint8(c.SourceNPI),
		DestTON: uint8(c.DestTON), DestNPI: uint8(c.DestNPI), ServiceType: c.ServiceType, Classes: map[smpp.Status]smpp.Class{},
		NoReference: !c.UserReference, OnAmbiguous: ambiguous[c.OnAmbiguous], RetryMin: c.RetryMin, RetryMax: c.RetryMax, Failover: c.Failover, FailoverAfter: c.FailoverAfter,
		MaxUnmatched: c.MaxUnmatched, MaxInbound: c.MaxInbound,
	}
	for state, meaning := range c.ReceiptStates {
		carrier.States[state] = states[meaning]
	}
	tlvs, _ := c.StaticTLVs() // checked by configs, as are the classes and the TLS files
	for _, tlv := range tlvs {
		carrier.TLVs = append(carrier.TLVs, smpp.TLV(tlv))
	}
	overrides, _ := c.Classes()
	for status, class := range overrides {
		carrier.Classes[smpp.Status(status)] = classes[class]
	}
	for i := range c.Links {
		l := &c.Links[i]
		tls, _ := l.TLSConfig()
		carrier.Links = append(carrier.Links, dispatcher.Link{Weight: l.Weight, Binds: l.Binds, Options: smpp.Options{
			Name: l.Name, Address: string(l.Address), TLS: tls, Mode: bindModes[l.Bind], SystemID: l.SystemID, Password: string(l.Password),
			SystemType: l.SystemType, Window: l.Window, TPS: float64(l.TPS), EnquireLink: l.EnquireLink, EnquireTimeout: l.EnquireTimeout,
			ResponseTimeout: l.ResponseTimeout, DialTimeout: l.ConnectTimeout, BindTimeout: l.BindTimeout, UnknownHold: c.UnknownHold,
			DrainTimeout: 4 * time.Second, UnbindTimeout: time.Second,
		}})
	}
	return carrier
}
