package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"intumwa/tools/carriersim"
)

// carrierSimCmd plays carriers: SMSCs on TCP. The last digits of a recipient choose the message's fate.
type carrierSimCmd struct {
	Carrier      []string      `help:"A carrier to play and its SMPP address, e.g. lumitel=127.0.0.1:2775. May be given again." placeholder:"NAME=ADDRESS" default:"carrier=127.0.0.1:2775" sep:"none"`
	Page         string        `help:"Address of the page (and its JSON) that shows what was received; empty: none." default:"127.0.0.1:2780"`
	SystemID     string        `name:"system-id" help:"What a bind must give; empty: anything."`
	Password     string        `help:"With --system-id. Better in the variable: other users of the machine can read it here." env:"CARRIER_SIM_PASSWORD"`
	RespDelay    time.Duration `help:"Time before a submit_sm_resp."`
	ReceiptDelay time.Duration `help:"Time from the response to the receipt." default:"300ms"`
	TPS          int           `name:"tps" help:"Refuse with ESME_RTHROTTLED above so many a second; 0: no limit."`
	Window       int           `help:"Refuse with ESME_RTHROTTLED above so many unanswered on a session; 0: no limit."`
	NoFates      bool          `help:"Deliver to every recipient, whatever the last digits: for load."`
	Fates        bool          `help:"Print the table of fates in Markdown and end."`
	ListFaults   bool          `help:"Print the table of faults in Markdown and end."`

	IDs           carriersim.IDFormat    `name:"ids" help:"Message ids in the response and in the receipt: decimal, hex, hex-then-decimal, decimal-then-hex, zero-padded, trimmed, case, uuid, long." default:"decimal"`
	Receipts      carriersim.ReceiptForm `help:"Where a receipt carries what it says: text, text-tlv, tlv, payload." default:"text"`
	DataSM        bool                   `name:"receipts-data-sm" help:"Receipts are data_sm."`
	NoReceipts    bool                   `help:"No receipts: submit_sm_resp is all that confirms."`
	EchoReference bool                   `help:"Receipts echo user_message_reference."`
	Alphabet      carriersim.Alphabet    `help:"What data_coding 0 means: gsm7, latin1, ascii." default:"gsm7"`
	Lenient       bool                   `help:"Accept what breaks the protocol and only record it."`
	IdleTimeout   time.Duration          `help:"Close a session from which nothing came for so long; 0: never."`
	Faults        string                 `help:"File with a JSON object of the faults to begin with, e.g. {\"refuse_ratio\": 0.3}; POST /faults on the page changes them." type:"existingfile" placeholder:"FILE"`
}

// Run serves until ctx ends.
func (c *carrierSimCmd) Run(ctx context.Context, out output) error {
	if c.Fates {
		_, err := io.WriteString(out.stdout, carriersim.FatesTable())
		return err
	}
	if c.ListFaults {
		_, err := io.WriteString(out.stdout, carriersim.FaultsTable())
		return err
	}
	log := slog.New(slog.NewTextHandler(out.stderr, nil))
	var faults carriersim.Faults
	if c.Faults != "" {
		text, err := os.ReadFile(c.Faults)
		if err == nil {
			err = json.Unmarshal(text, &faults)
		}
		if err != nil {
			return fmt.Errorf("--faults %s: %w", c.Faults, err)
		}
	}
	var endpoints []carriersim.Endpoint
	for _, text := range c.Carrier {
		name, address, ok := strings.Cut(text, "=")
		if !ok || name == "" || address == "" {
			return fmt.Errorf("--carrier %s: want NAME=ADDRESS", text)
		}
		endpoints = append(endpoints, carriersim.Endpoint{
			Carrier: carriersim.Options{Name: name, SystemID: c.SystemID, Password: c.Password, RespDelay: c.RespDelay,
				ReceiptDelay: c.ReceiptDelay, TPS: c.TPS, Window: c.Window, NoFates: c.NoFates, IDs: c.IDs,
				Receipts: carriersim.ReceiptStyle{Form: c.Receipts, DataSM: c.DataSM}, NoReceipts: c.NoReceipts,
				EchoReference: c.EchoReference, Alphabet: c.Alphabet, Lenient: c.Lenient, IdleTimeout: c.IdleTimeout,
				Faults: faults, Log: log},
			SMPP: address, HTTP: c.Page,
			Listening: func(_ *carriersim.Carrier, smpp, web net.Addr) {
				log.Info("carrier listens", "carrier", name, "smpp", smpp.String(), "page", fmt.Sprint(web))
			},
		})
	}
	if len(endpoints) == 0 {
		return errors.New("no carrier to play")
	}
	return carriersim.RunFleet(ctx, endpoints)
}
