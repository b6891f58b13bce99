package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"intumwa/smpp"
)

// floor does what the gateway does for a message, but stores nothing: it reads the request, responds, submits over one
// bind, and calls the endpoint on the receipt. With this HTTP server and these SMPP sessions, no gateway can cost less.
type floor struct {
	hook string // address of the endpoint

	bind    *smpp.Bind
	accept  chan floorMessage
	deliver chan int64 // messages with a receipt

	mu    sync.Mutex
	last  int64
	of    map[string]int64 // carrier ids without a receipt yet
	early map[string]bool  // receipts that preceded their response
}

type floorMessage struct {
	id     int64
	Number string `json:"phone_number"`
	Text   string `json:"message"`
}

// floorCallers is the number of concurrent webhook calls.
const floorCallers = 64

// serveFloor serves until ctx ends. The addresses are those of the API, of /readyz, of the carrier and of the endpoint.
func serveFloor(ctx context.Context, addresses []string) error {
	if len(addresses) != 4 {
		return fmt.Errorf("-floor needs four addresses, not %d", len(addresses))
	}
	f := &floor{hook: addresses[3], accept: make(chan floorMessage, 1<<16), deliver: make(chan int64, 1<<16),
		of: map[string]int64{}, early: map[string]bool{}}
	var err error
	if f.bind, err = smpp.New(smpp.Options{Carrier: "bench", Name: "floor",
		Account: smpp.Account{Addresses: addresses[2:3], SystemID: "bench", Password: "bench"},
		Window:  100, Deliver: f.receipt}); err != nil {
		return err
	}
	go func() { _ = f.bind.Run(ctx) }()
	go f.submit(ctx)
	for range floorCallers {
		go f.call()
	}
	ready := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	errs := make(chan error, 2)
	for i, handler := range []http.Handler{http.HandlerFunc(f.send), ready} {
		server := &http.Server{Addr: addresses[i], Handler: handler, ReadHeaderTimeout: time.Minute}
		go func() { errs <- server.ListenAndServe() }()
	}
	select {
	case err = <-errs:
	case <-ctx.Done():
	}
	return err
}

// send accepts a single send or a bulk.
func (f *floor) send(rw http.ResponseWriter, request *http.Request) {
	var body struct {
		floorMessage
		Messages []floorMessage `json:"messages"`
	}
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	if body.Messages == nil {
		body.Messages = []floorMessage{body.floorMessage}
	}
	f.mu.Lock()
	for i := range body.Messages {
		f.last++
		body.Messages[i].id = f.last
	}
	f.mu.Unlock()
	for _, m := range body.Messages {
		f.accept <- m
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(map[string]any{"success": true, "message_id": body.Messages[0].id})
}

// submit sends accepted messages within the window.
func (f *floor) submit(ctx context.Context) {
	for m := range f.accept {
		if err := f.bind.Submit(ctx, &smpp.Submit{Source: "BENCH", SourceTON: 5, Dest: strings.TrimPrefix(m.Number, "+"),
			DestTON: 1, DestNPI: 1,
			RegisteredDelivery: 1, ShortMessage: []byte(m.Text)},
			func(r smpp.Result) { f.response(m.id, r.MessageID) }); err != nil {
			return // bench notices the missing message
		}
	}
}

func (f *floor) response(id int64, carrierID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.early[carrierID] {
		f.of[carrierID] = id
		return
	}
	delete(f.early, carrierID)
	f.deliver <- id
}

func (f *floor) receipt(d *smpp.Delivery) {
	defer d.Respond(smpp.StatusOK)
	if d.Receipt == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id, found := f.of[d.Receipt.ID]
	if !found {
		f.early[d.Receipt.ID] = true
		return
	}
	delete(f.of, d.Receipt.ID)
	f.deliver <- id
}

// call posts the webhooks over one connection.
func (f *floor) call() {
	var c *client
	for id := range f.deliver {
		if c == nil {
			var err error
			if c, err = dial(f.hook); err != nil {
				return // bench notices the missing webhook
			}
		}
		at := time.Now().UTC().Format(time.RFC3339)
		c.body = fmt.Appendf(
			c.body[:0], `{"event":"sms.sent","timestamp":%q,"data":{"message_id":%d,"status":"sms.sent","sent_at":%q}}`, at, id,
			at)
		if err := c.send("/", ""); err != nil {
			return
		}
	}
}

// playFloor measures each load with the floor and then with the gateway, whose figures are shown as multiples of the
// floor's.
func playFloor(ctx context.Context, b *bench, _ scenario) error {
	for _, l := range []struct {
		name string
		n    int
		load func(w *world, n int) work
	}{{"singles", singleSends, (*world).singles}, {"bulk", bulkSends, (*world).bulk},
		{"steady", steadyRate * steadyFor, paced(steadyRate)}} {
		for _, name := range []string{floorOf(l.name), l.name} {
			if err := b.inWorld(ctx, setup{endpoint: true, floor: name != l.name}, func(w *world) error {
				return b.load(ctx, w, name, "a webhook each, window 100", l.n, l.load(w, l.n))
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// floorOf names the result of a load with the floor.
func floorOf(name string) string { return "floor " + name }
