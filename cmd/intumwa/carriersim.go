package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"intumwa/smpp/carriersim"
)

// carrierSimCmd plays carriers: real SMSCs over TCP, in which the last digits
// of the recipient choose a message's fate.
type carrierSimCmd struct {
	Carrier      []string      `help:"A carrier to play and its SMPP address, e.g. lumitel=127.0.0.1:2775. May be given again." placeholder:"NAME=ADDRESS" default:"carrier=127.0.0.1:2775" sep:"none"`
	Page         string        `help:"Address of the page (and its JSON) that shows what was received; empty: none." default:"127.0.0.1:2780"`
	SystemID     string        `name:"system-id" help:"What a bind must give; empty: anything."`
	Password     string        `help:"With --system-id."`
	RespDelay    time.Duration `help:"Time before a submit_sm_resp."`
	ReceiptDelay time.Duration `help:"Time from the response to the receipt." default:"300ms"`
	TPS          int           `name:"tps" help:"Refuse with ESME_RTHROTTLED above so many a second; 0: no limit."`
	NoFates      bool          `help:"Deliver to every recipient, whatever the last digits: for load."`
}

// Run serves until ctx ends.
func (c *carrierSimCmd) Run(ctx context.Context, p *program) error {
	log := slog.New(slog.NewTextHandler(p.stderr, nil))
	var endpoints []carriersim.Endpoint
	for _, text := range c.Carrier {
		name, address, ok := strings.Cut(text, "=")
		if !ok || name == "" || address == "" {
			return fmt.Errorf("--carrier %s: want NAME=ADDRESS", text)
		}
		endpoints = append(endpoints, carriersim.Endpoint{
			Carrier: carriersim.Options{Name: name, SystemID: c.SystemID, Password: c.Password, RespDelay: c.RespDelay,
				ReceiptDelay: c.ReceiptDelay, TPS: c.TPS, NoFates: c.NoFates, Log: log},
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
