package main

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/configs"
	"intumwa/dispatcher"
	"intumwa/dispatcher/profile"
	"intumwa/inbound/handsets"
	"intumwa/queue"
	"intumwa/smpp"
	"intumwa/sms"
	"intumwa/switchboard"
)

// Configuration words as constants of their packages. TestConfigurationWords compares them with configs.
var (
	refunds = map[string]dispatcher.Refund{"unsubmitted": dispatcher.RefundUnsubmitted, "failed": dispatcher.RefundFailed, "never": dispatcher.RefundNever}

	confirmations = map[string]dispatcher.Confirm{"receipt": dispatcher.ConfirmByReceipt, "submit": dispatcher.ConfirmBySubmit}

	statuses = map[string]sms.Status{"sent": sms.Sent, "failed": sms.Failed, "none": sms.Pending}

	idFormats = map[string]profile.IDFormat{"auto": profile.IDAuto, "same": profile.IDSame,
		"hex_to_decimal": profile.IDHexToDecimal, "decimal_to_hex": profile.IDDecimalToHex}

	concats = map[string]profile.Concat{"udh8": profile.ConcatUDH8, "udh16": profile.ConcatUDH16, "sar": profile.ConcatSAR, "payload": profile.ConcatPayload}

	alphabets = map[string]profile.Alphabet{"gsm7": profile.AlphabetGSM7, "latin1": profile.AlphabetLatin1, "ascii": profile.AlphabetASCII}

	validities = map[string]profile.Validity{"relative": profile.ValidityRelative, "absolute": profile.ValidityAbsolute, "none": profile.ValidityNone}

	policies = map[string]dispatcher.Ambiguous{"resend": dispatcher.AmbiguousResend, "hold": dispatcher.AmbiguousHold, "fail": dispatcher.AmbiguousFail}

	classes = map[string]smpp.Class{"throttled": smpp.ClassThrottled, "temporary": smpp.ClassTemporary, "permanent": smpp.ClassPermanent,
		"unroutable": smpp.ClassUnroutable, "configuration": smpp.ClassConfiguration}

	bindModes = map[string]smpp.BindMode{"transceiver": smpp.Transceiver, "transmitter_receiver": smpp.TransmitterReceiver}
)

func dispatcherOptions(c *configs.Config, log *slog.Logger, metrics prometheus.Registerer) dispatcher.Options {
	options := dispatcher.Options{Validity: c.Messages.Validity, Refund: refunds[c.Billing.Refund],
		ReceiptRetention: c.Retention.Receipts, InboundRetention: c.Messages.InboundRetention,
		MessageRetention: c.Retention.Messages, BodyRetention: c.Retention.Bodies, NumberRetention: c.Retention.Numbers, Log: log, Metrics: metrics}
	for i := range c.Carriers {
		options.Carriers = append(options.Carriers, carrierOf(&c.Carriers[i]))
	}
	return options
}

// inboundRepeats is how long an identical message from a handset counts as the carrier's repetition after a
// lost acknowledgement.
const inboundRepeats = 2 * time.Minute

func switchboardOptions(c *configs.Config, route func(sms.Number) (string, bool), q *queue.Queue, log *slog.Logger, metrics prometheus.Registerer) switchboard.Options {
	return switchboard.Options{Repeats: inboundRepeats, StopWords: handsetWords(c.Inbound.StopWords), StartWords: handsetWords(c.Inbound.StartWords),
		StopReply: c.Inbound.StopReply, StartReply: c.Inbound.StartReply, TestSender: c.TestSender, Validity: c.Messages.Validity,
		Route: route, Push: q.Push, Log: log, Metrics: metrics}
}

// handsetWords folds words the way package handsets compares them.
func handsetWords(texts []string) (words []string) {
	for _, text := range texts {
		words = append(words, handsets.Word(text))
	}
	return words
}

// secondWithin is the latest UNDELIV after acceptance that lets the second carrier try. Later the message may have
// reached the handset.
const secondWithin = time.Minute

// carrierOf converts a checked configuration.
func carrierOf(c *configs.Carrier) dispatcher.Carrier {
	carrier := dispatcher.Carrier{
		Name: c.Name, Confirm: confirmations[c.Confirm], OnReceiptTimeout: statuses[c.OnReceiptTimeout], ReceiptTimeout: c.ReceiptTimeout,
		Profile: profileOf(c), OnAmbiguous: policies[c.OnAmbiguous], Failover: c.Failover, SecondCarrier: c.SecondCarrier, SecondWithin: secondWithin,
	}
	for i := range c.Links {
		l := &c.Links[i]
		tls, _ := l.TLSConfig()
		carrier.Links = append(carrier.Links, dispatcher.Link{Options: smpp.Options{
			Name: l.Name, Address: l.Address, TLS: tls, Mode: bindModes[l.Bind], SystemID: l.SystemID, Password: string(l.Password),
			SystemType: l.SystemType, Window: l.Window, TPS: float64(l.TPS), EnquireLink: l.EnquireLink, EnquireTimeout: l.EnquireTimeout(),
			ResponseTimeout: l.ResponseTimeout, UnknownHold: c.UnknownHold, DrainTimeout: 4 * time.Second, UnbindTimeout: time.Second,
		}})
	}
	return carrier
}

// profileOf converts how a carrier wants its SMPP.
func profileOf(c *configs.Carrier) profile.Profile {
	p := profile.Profile{
		Source: profile.Sources{Alphanumeric: tonNPI(c.SourceTONNPI), Short: tonNPI(c.SourceTONNPI), International: tonNPI(c.SourceTONNPI)},
		Dest:   tonNPI(c.DestTONNPI), ServiceType: c.ServiceType, NoReference: !c.UserReference,
		Alphabet: alphabets[c.Alphabet], Concat: concats[c.Concat], Validity: validities[c.ValidityPeriod],
		IDFormat: idFormats[c.MessageIDFormat], States: map[string]sms.Status{}, Classes: map[smpp.Status]smpp.Class{},
	}
	for state, meaning := range c.ReceiptStates {
		p.States[state] = statuses[meaning]
	}
	tlvs, _ := c.StaticTLVs() // configs checked them, as well as the codes
	for _, tlv := range tlvs {
		p.TLVs = append(p.TLVs, smpp.TLV(tlv))
	}
	for code, class := range c.ErrorClasses {
		status, _ := configs.CommandStatus(code)
		p.Classes[smpp.Status(status)] = classes[class]
	}
	return p
}

// tonNPI converts a checked pair.
func tonNPI(pair []int) profile.TONNPI {
	return profile.TONNPI{TON: uint8(pair[0]), NPI: uint8(pair[1])}
}
