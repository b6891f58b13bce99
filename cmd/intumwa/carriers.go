package main

import (
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/configs"
	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/setup"
	"intumwa/inbound/handsets"
	"intumwa/inbound/switchboard"
	"intumwa/internal/queue"
	"intumwa/smpp"
	"intumwa/sms"
)

// Configuration words as constants of their packages. TestConfigurationWords compares them with configs.
var (
	refunds = map[string]setup.Refund{"unsubmitted": setup.RefundUnsubmitted, "failed": setup.RefundFailed,
		"never": setup.RefundNever}

	registrations = map[string]bool{"required": true, "not_needed": false}

	confirmations = map[string]setup.Confirm{"receipt": setup.ConfirmByReceipt, "submit": setup.ConfirmBySubmit}

	statuses = map[string]sms.Status{"sent": sms.Sent, "failed": sms.Failed, "none": sms.Pending}

	inboundCodings = map[string]profile.Inbound{"alphabet": profile.InboundAlphabet, "packed": profile.InboundPacked,
		"utf8": profile.InboundUTF8}
	idFormats = map[string]profile.IDFormat{"auto": profile.IDAuto, "same": profile.IDSame,
		"hex_to_decimal": profile.IDHexToDecimal, "decimal_to_hex": profile.IDDecimalToHex}

	concats = map[string]profile.Concat{"udh8": profile.ConcatUDH8, "udh16": profile.ConcatUDH16, "sar": profile.ConcatSAR,
		"payload": profile.ConcatPayload}

	alphabets = map[string]profile.Alphabet{"gsm7": profile.AlphabetGSM7, "latin1": profile.AlphabetLatin1,
		"ascii": profile.AlphabetASCII}

	validities = map[string]profile.Validity{"relative": profile.ValidityRelative, "absolute": profile.ValidityAbsolute,
		"none": profile.ValidityNone}

	policies = map[string]setup.Ambiguous{"resend": setup.AmbiguousResend, "hold": setup.AmbiguousAwaitReceipt,
		"fail": setup.AmbiguousFail}

	classes = map[string]smpp.Class{"throttled": smpp.ClassThrottled, "temporary": smpp.ClassTemporary,
		"permanent":  smpp.ClassPermanent,
		"unroutable": smpp.ClassUnroutable, "configuration": smpp.ClassConfiguration}

	bindModes = map[string]smpp.BindMode{"transceiver": smpp.Transceiver, "transmitter_receiver": smpp.TransmitterReceiver,
		"transmitter": smpp.Transmitter, "receiver": smpp.Receiver}

	destForms = map[string]profile.DestForm{"international": profile.DestInternational, "plus": profile.DestPlus,
		"zeros":    profile.DestZeros,
		"national": profile.DestNational, "trunk": profile.DestTrunk}
)

func dispatcherOptions(c *configs.Config, log *slog.Logger, metrics prometheus.Registerer) setup.Options {
	options := setup.Options{Validity: c.Messages.Validity, Refund: refunds[c.Billing.Refund],
		ReceiptRetention: c.Retention.Receipts, InboundRetention: c.Messages.InboundRetention,
		MessageRetention: c.Retention.Messages, BodyRetention: c.Retention.Bodies, NumberRetention: c.Retention.Numbers,
		OTPKey: []byte(c.Accounts.OTPKey), Log: log, Metrics: metrics}
	for i := range c.Carriers {
		options.Carriers = append(options.Carriers, carrierOf(&c.Carriers[i]))
	}
	return options
}

// inboundRepeats is how long an identical message from a handset counts as the carrier's repetition after a
// lost acknowledgement.
const inboundRepeats = 2 * time.Minute

func switchboardOptions(c *configs.Config, route func(sms.Number) (string, bool), q *queue.Queue, answer func(),
	log *slog.Logger, metrics prometheus.Registerer) switchboard.Options {
	return switchboard.Options{Repeats: inboundRepeats, StopWords: handsetWords(c.Inbound.StopWords),
		StartWords: handsetWords(c.Inbound.StartWords),
		StopReply:  c.Inbound.StopReply, StartReply: c.Inbound.StartReply, TestSender: c.TestSender,
		Validity: c.Messages.Validity,
		Route:    route, Push: q.Push, Answer: answer, Log: log, Metrics: metrics}
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
func carrierOf(c *configs.Carrier) setup.Carrier {
	carrier := setup.Carrier{
		Name: c.Name, Confirm: confirmations[c.Confirm], OnReceiptTimeout: statuses[c.OnReceiptTimeout],
		ReceiptTimeout: c.ReceiptTimeout,
		Profile:        profileOf(c), OnAmbiguous: policies[c.OnAmbiguous], Failover: c.Failover,
		SecondCarrier: c.SecondCarrier,
		SecondWithin:  secondWithin, Registration: registrations[c.SenderRegistration],
	}
	for i := range c.Links {
		carrier.Links = append(carrier.Links, setup.Link{Options: linkOf(c, &c.Links[i])})
	}
	return carrier
}

// linkOf converts a link of a checked configuration.
func linkOf(c *configs.Carrier, l *configs.Link) smpp.Options {
	tls, _ := l.TLSConfig() // configs checked them, as well as the version
	version, _ := configs.InterfaceVersion(l.Version)
	options := smpp.Options{
		Name: l.Name, Account: smpp.Account{Addresses: l.AllAddresses(), SystemID: l.SystemID, Password: string(l.Password)},
		Receiver:     smpp.Account{SystemID: l.Receiver.SystemID, Password: string(l.Receiver.Password)},
		LocalAddress: l.LocalAddress,
		TLS:          tls, Mode: bindModes[l.Bind], Version: version, SystemType: l.SystemType, AddressRange: l.AddressRange,
		Window: l.Window, TPS: float64(l.TPS), EnquireLink: l.EnquireLink, EnquireTimeout: l.EnquireTimeout(),
		ResponseTimeout: l.ResponseTimeout, UnknownHold: c.UnknownHold, DrainTimeout: 4 * time.Second,
		UnbindTimeout: time.Second,
	}
	if l.Receiver.Address != "" {
		options.Receiver.Addresses = []string{l.Receiver.Address}
	}
	of := tonNPI(l.RangeTONNPI)
	options.AddressTON, options.AddressNPI = of.TON, of.NPI
	return options
}

// profileOf converts how a carrier wants its SMPP.
func profileOf(c *configs.Carrier) profile.Profile {
	registered := uint8(c.RegisteredDelivery)
	p := profile.Profile{
		Source: profile.Sources{Alphanumeric: tonNPI(c.SourceTONNPI.Alphanumeric), Short: tonNPI(c.SourceTONNPI.Short),
			International: tonNPI(c.SourceTONNPI.International)},
		Dest: tonNPI(c.DestTONNPI), DestForm: destForms[c.DestForm], ServiceType: c.ServiceType,
		NoReference:   !c.UserReference,
		DefaultCoding: uint8(c.DataCoding.Default), UCS2Coding: uint8(c.DataCoding.UCS2),
		Latin1Coding: uint8(c.DataCoding.Latin1), NoLatin1: c.DataCoding.Latin1 == 0,
		SinglePriority: uint8(c.SinglePriority), RegisteredDelivery: &registered,
		Alphabet: alphabets[c.Alphabet], Concat: concats[c.Concat], Validity: validities[c.ValidityPeriod],
		IDFormat: idFormats[c.MessageIDFormat], States: map[string]sms.Status{}, Classes: map[smpp.Status]smpp.Class{},
	}
	if class, err := strconv.ParseUint(c.MessageClass, 10, 8); err == nil { // not "none"
		one := uint8(class)
		p.MessageClass = &one
	}
	p.UnmarkedReceipts, p.Inbound = c.UnmarkedReceipts, inboundCodings[c.InboundCoding]
	p.Reading = smpp.Reading{StateDigits: c.ReceiptDigits, HiddenUDH: c.HiddenUDH,
		Packed: p.Inbound == profile.InboundPacked}
	for state, meaning := range c.ReceiptStates {
		if _, given := c.ReceiptStates[smpp.StateOf(state)]; !given || smpp.StateOf(state) == state {
			// of two names for one, the abbreviation counts
			p.States[smpp.StateOf(state)] = statuses[meaning]
		}
	}
	tlvs, _ := c.StaticTLVs() // configs checked them, as well as the codes
	for _, tlv := range tlvs {
		p.TLVs = append(p.TLVs, smpp.TLV(tlv))
	}
	if c.DeliveryRefusal != "" {
		status, _ := configs.CommandStatus(c.DeliveryRefusal)
		p.DeliveryRefusal = smpp.Status(status)
	}
	for code, class := range c.ErrorClasses {
		status, _ := configs.CommandStatus(code)
		p.Classes[smpp.Status(status)] = classes[class]
	}
	return p
}

// tonNPI converts a pair.
func tonNPI(pair []int) (p profile.TONNPI) {
	if len(pair) == 2 {
		p.TON, p.NPI = uint8(pair[0]), uint8(pair[1])
	}
	return p
}
