package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"intumwa/tools/carriersim"
)

// carrierSimCmd simulates carriers (SMSCs) on TCP. The last digits of a recipient choose the message's
// fate.
type carrierSimCmd struct {
	Carrier      []string      `help:"A carrier to play, with its SMPP address." placeholder:"NAME=ADDRESS" default:"carrier=127.0.0.1:2775" sep:"none"`
	Page         string        `help:"Address of the page that shows what came; empty: none." default:"127.0.0.1:2780"`
	SystemID     string        `name:"system-id" help:"What a bind must give; empty: anything."`
	Password     string        `help:"With --system-id. Better in the variable." env:"CARRIER_SIM_PASSWORD"`
	RespDelay    time.Duration `help:"Time before a submit_sm_resp."`
	ReceiptDelay time.Duration `help:"Time from the response to the receipt." default:"300ms"`
	TPS          int           `name:"tps" help:"Refuse with ESME_RTHROTTLED above so many a second; 0: no limit."`
	Window       int           `help:"Refuse with ESME_RTHROTTLED above so many unanswered on a session; 0: no limit."`
	NoFates      bool          `help:"Deliver to every recipient, whatever the last digits: for load."`
	Fates        bool          `help:"Print the table of fates in Markdown and end."`
	ListFaults   bool          `help:"Print the table of faults in Markdown and end."`

	IDs           carriersim.IDFormat    `name:"ids" help:"Message ids in the response and in the receipt: decimal, hex, hex-then-decimal, decimal-then-hex, zero-padded, trimmed, case, uuid, long." default:"decimal"`
	Receipts      carriersim.ReceiptForm `help:"Where a receipt has its data: text, text-tlv, tlv, payload." default:"text"`
	DataSM        bool                   `name:"receipts-data-sm" help:"Receipts are data_sm."`
	NoReceipts    bool                   `help:"No receipts: submit_sm_resp is all that confirms."`
	EchoReference bool                   `help:"Receipts echo user_message_reference."`
	Alphabet      carriersim.Alphabet    `help:"What data_coding 0 means: gsm7, latin1, ascii." default:"gsm7"`
	Lenient       bool                   `help:"Accept what breaks the protocol and only record it."`
	IdleTimeout   time.Duration          `help:"Close a session from which nothing came for so long; 0: never."`
	Faults        string                 `help:"File with a JSON object of the faults to begin with, e.g. {\"refuse_ratio\": 0.3}; POST /faults on the page changes them, of several carriers /NAME/faults." type:"existingfile" placeholder:"FILE"`
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
	if err := readFaults(c.Faults, &faults); err != nil {
		return err
	}
	var config net.ListenConfig
	group, ctx := errgroup.WithContext(ctx)
	var carriers []*carriersim.Carrier
	for _, text := range c.Carrier {
		name, address, _ := strings.Cut(text, "=")
		if !carrierName.MatchString(name) || address == "" {
			return fmt.Errorf("--carrier %s: want NAME=ADDRESS, with a name of a-z, 0-9, - and _", text)
		}
		if slices.ContainsFunc(carriers, func(other *carriersim.Carrier) bool { return other.Name() == name }) {
			return fmt.Errorf("--carrier %s: there are two with this name", text)
		}
		listener, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("listening for %s: %w", name, err)
		}
		defer listener.Close()
		carrier := carriersim.New(carriersim.Options{Name: name, SystemID: c.SystemID, Password: c.Password,
			RespDelay:    c.RespDelay,
			ReceiptDelay: c.ReceiptDelay, TPS: c.TPS, Window: c.Window, NoFates: c.NoFates, IDs: c.IDs,
			Receipts: carriersim.ReceiptStyle{Form: c.Receipts, DataSM: c.DataSM}, NoReceipts: c.NoReceipts,
			EchoReference: c.EchoReference, Alphabet: c.Alphabet, Lenient: c.Lenient, IdleTimeout: c.IdleTimeout,
			Faults: faults, Log: log})
		carriers = append(carriers, carrier)
		group.Go(func() error { return carrier.Serve(ctx, listener) })
		log.Info("carrier listens", "carrier", name, "smpp", listener.Addr().String(), "page", c.Page)
	}
	if c.Page != "" {
		listener, err := config.Listen(ctx, "tcp", c.Page)
		if err != nil {
			return fmt.Errorf("listening for the page: %w", err)
		}
		handler := carriersim.FleetHandler(carriers...)
		if len(carriers) == 1 {
			handler = carriers[0].Handler()
		}
		group.Go(func() error { return serveHTTP(ctx, listener, handler) })
	}
	return group.Wait()
}

var carrierName = regexp.MustCompile(`^[a-z0-9_-]+$`) // part of the page's addresses

// serveHTTP serves until ctx ends.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// readFaults reads the file of the flag --faults, JSON. Without a name it leaves faults as they are.
func readFaults(name string, faults any) error {
	if name == "" {
		return nil
	}
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, faults)
	}
	if err != nil {
		return fmt.Errorf("--faults %s: %w", name, err)
	}
	return nil
}
