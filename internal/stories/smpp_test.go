package stories

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/smpp"
	"intumwa/tools/rig"
)

// program is a customer's program that speaks SMPP: some binds of one key, at one or several gateways.
type program struct {
	from  *company
	word  string
	binds []*smpp.Bind

	mu       sync.Mutex
	accepted map[string]string // text, by the id of submit_sm_resp
	receipts map[string]int    // by id
	states   map[string]string // of the receipts
	doubtful int               // submit_sm without an answer
	refused  map[smpp.Status]int
}

// binds starts a program with n binds; each tries the addresses in turn.
func (c *company) binds(n int, addresses ...string) *program {
	w := c.w
	w.t.Helper()
	systemID, password := c.key()
	p := &program{from: c, word: word(), accepted: map[string]string{}, receipts: map[string]int{},
		states: map[string]string{}, refused: map[smpp.Status]int{}}
	w.secret(p.word)
	for range n {
		b, err := smpp.New(smpp.Options{Carrier: "gateway", Name: c.sender, Window: 20, Version: smpp.Version34,
			Deliver: p.receive,
			Account: smpp.Account{Addresses: addresses, SystemID: systemID, Password: password}})
		if err != nil {
			w.t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = b.Run(ctx) }()
		w.t.Cleanup(func() { cancel(); <-ended })
		p.binds = append(p.binds, b)
	}
	return p
}

// key makes a key of kind SMPP.
func (c *company) key() (systemID, password string) {
	c.w.t.Helper()
	var made struct {
		SystemID string `json:"system_id"`
		Password string `json:"password"`
	}
	c.w.orders(&made, "", "smpp", "create", "--company", c.number(), "--name", "program", "--networks", "127.0.0.0/8",
		"--tps", "10000", "--window", "20")
	c.w.secret(made.Password)
	return made.SystemID, made.Password
}

func (p *program) receive(d *smpp.Delivery) {
	p.mu.Lock()
	if d.Receipt != nil {
		p.receipts[d.Receipt.ID]++
		p.states[d.Receipt.ID] = d.Receipt.State
	}
	p.mu.Unlock()
	d.Respond(smpp.StatusOK)
}

// sends submits messages from..to over all binds, at most rate a second. A message without an answer is not repeated:
// the customer is in doubt.
func (p *program) sends(from, to, rate int) {
	var all sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for i := from; i < to; i++ {
		<-tick.C
		b, text := p.binds[i%len(p.binds)], fmt.Sprintf("%s %06d", p.word, i)
		number := p.from.w.subscriber(i)
		all.Go(func() {
			m := smpp.Submit{Source: p.from.sender, SourceTON: 5, Dest: strings.TrimPrefix(number, "+"), DestTON: 1, DestNPI: 1,
				RegisteredDelivery: 1, ShortMessage: []byte(text)}
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				done := make(chan smpp.Result, 1)
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				err := b.Submit(ctx, &m, func(r smpp.Result) { done <- r })
				cancel()
				if err != nil { // not bound: nothing was sent
					continue
				}
				if p.answered(text, <-done) {
					return
				}
			}
		})
	}
	all.Wait()
}

// answered records a result; false if the message is to be sent again.
func (p *program) answered(text string, r smpp.Result) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r.Outcome {
	case smpp.Accepted:
		p.accepted[r.MessageID] = text
	case smpp.NoAnswer:
		p.doubtful++
	case smpp.Rejected:
		p.refused[r.Status]++
		return r.Status != smpp.StatusMsgQueueFull && r.Status != smpp.StatusThrottled
	default: // it was not written
		return false
	}
	return true
}

// adds checks that each answered message is recorded once under its id, charged, and reported once with the same id;
// that nothing came to a carrier that is not charged; and that each lost session of a link repeated at most its window.
func (p *program) adds(duplicates int) {
	w := p.from.w
	w.t.Helper()
	w.drains()
	w.settles(settledWithin)
	reported := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		n := 0
		for id := range p.accepted {
			if p.receipts[id] > 0 {
				n++
			}
		}
		return n
	}
	w.shrinks("without a receipt", settledWithin, func() int { return len(p.accepted) - reported() })
	records := map[string]record{}
	for _, r := range p.from.records() {
		records[r.ID] = r
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	twice := 0
	for id, text := range p.accepted {
		if r, known := records[id]; !known || r.Body != text {
			w.t.Errorf("the acknowledged message %s is lost", id)
		}
		twice += p.receipts[id] - 1
		if p.states[id] != "DELIVRD" {
			w.t.Errorf("message %s: %s", id, p.states[id])
		}
	}
	if more := len(records) - len(p.accepted); more < 0 || more > p.doubtful {
		w.t.Errorf("%d messages are recorded beside the %d acknowledged ones, with %d without an answer", more,
			len(p.accepted), p.doubtful)
	}
	if twice > duplicates {
		w.t.Errorf("%d receipts came twice", twice)
	}
	charged, spent, repeatable := map[string]bool{}, int64(0), 0
	for _, r := range records {
		charged[r.Body], spent = true, spent+r.Segments
	}
	arrived, copies := map[string]bool{}, 0
	for _, carrier := range w.carriers {
		repeatable += window * int(max(carrier.Stats().Binds, 1)-1)
		for _, m := range carrier.Messages() {
			if !strings.HasPrefix(m.Text, p.word) {
				continue
			}
			if arrived[m.Text], copies = true, copies+1+m.Duplicates; !charged[m.Text] {
				w.t.Errorf("a carrier got %q, which is not charged", m.Text)
			}
		}
	}
	again := copies - len(arrived)
	if got := p.from.credits(); got != p.from.granted-spent {
		w.t.Errorf("the company has %d credits, want %d", got, p.from.granted-spent)
	}
	if again > repeatable {
		w.t.Errorf("%d messages arrived twice, at most %d may", again, repeatable)
	}
	w.audited()
	w.t.Logf("%d acknowledged, %d without an answer, %d receipts twice, refused %v; %d arrived, %d charged, %d arrived "+
		"twice of at most %d",
		len(p.accepted), p.doubtful, twice, p.refused, len(arrived), spent, again, repeatable)
}

// The gateway is killed while a customer's program submits 500 messages a second. No acknowledged message is lost or
// charged twice, and every receipt comes after the next bind with the same id.
func TestBindsSurviveAKill(t *testing.T) {
	t.Parallel()
	busy(t)
	address := rig.FreeAddress()
	w := play(t, scene{carriers: []carrier{steady()}, config: tree{"smpp_server": tree{"listen": address}}})
	p := w.company("Banki", 1_000_000).binds(4, address)
	sent := make(chan struct{})
	go func() { defer close(sent); p.sends(0, 1500, 500) }()
	w.shrinks("not accepted, of a third", onTheWayWithin,
		func() int { p.mu.Lock(); defer p.mu.Unlock(); return 500 - len(p.accepted) })
	w.gateway.kill()
	w.gateway.start()
	<-sent
	p.adds(4 * smpp.DefaultDeliverWindow)
}

// Kannel submits 500 messages a second while the gateway is killed. Each message that Kannel knows to be accepted is
// recorded under its id, and its receipt comes after the next bind with the same id.
func TestKannelSurvivesAKill(t *testing.T) {
	t.Parallel()
	busy(t)
	address := rig.FreeAddress()
	w := play(t, scene{carriers: []carrier{steady()}, config: tree{"smpp_server": tree{"listen": address}}})
	c := w.company("ACME", 1_000_000)
	systemID, password := c.key()
	host, port, _ := strings.Cut(address, ":")
	k := testenv.NewKannel(t, fmt.Sprintf(`group = smsc
smsc = smpp
smsc-id = us
host = %s
port = %s
transceiver-mode = true
smsc-username = %s
smsc-password = %s
system-type = ""
reconnect-delay = 1
max-pending-submits = 20
`, host, port, systemID, password))
	const messages = 1000
	text := word()
	w.secret(text)
	var senders sync.WaitGroup
	tick := time.NewTicker(time.Second / 500)
	defer tick.Stop()
	for i := range messages {
		<-tick.C
		senders.Go(func() {
			k.Send(fmt.Sprint(i), fmt.Sprintf("%s %06d", text, i), "to="+strings.TrimPrefix(w.subscriber(i), "+"),
				"source-addr-ton=5")
		})
		if i == messages/2 {
			w.gateway.kill()
			w.gateway.start()
		}
	}
	senders.Wait()
	w.shrinks("without an end at Kannel", settledWithin, func() int {
		ended, accepted := map[string]bool{}, map[string]bool{}
		for _, s := range k.Heard("/dlr?of=") {
			of := strings.Split(s, "&")[0]
			switch {
			case strings.Contains(s, "&report=1&"):
				ended[of] = true
			case strings.Contains(s, "&report=8&"): // these calls pass each other
				accepted[of] = true
			}
		}
		return 2*messages - len(ended) - len(accepted)
	})
	w.drains()
	w.settles(settledWithin)
	records := map[string]string{}
	for _, r := range c.records() {
		records[r.ID] = r.Body
	}
	if more := len(records) - messages; more < 0 || more > 20 { // what Kannel sent again, because it had no answer
		t.Errorf("%d messages are recorded for %d", len(records), messages)
	}
	accepted := map[string]string{}                           // the reference, by id
	for _, report := range []string{"report=8", "report=1"} { // its calls pass each other
		for _, s := range k.Heard("/dlr?of=") {
			fields := strings.Split(s, "&")
			of, id := strings.TrimPrefix(fields[0], "/dlr?of="), strings.TrimPrefix(fields[2], "id=")
			if fields[1] != report {
				continue
			}
			if report == "report=8" {
				accepted[id] = of
			} else if n, _ := strconv.Atoi(of); accepted[id] != of || records[id] != fmt.Sprintf("%s %06d", text, n) {
				t.Errorf("the receipt of message %s has the id %q", of, id)
			}
		}
	}
	w.audited()
}

// Of two gateways one is killed for good: the binds move to the other, and so do their receipts.
func TestBindsMove(t *testing.T) {
	t.Parallel()
	busy(t)
	addresses := []string{rig.FreeAddress(), rig.FreeAddress()}
	w := play(t, scene{carriers: []carrier{steady()}, gateways: []tree{{"smpp_server": tree{"listen": addresses[0]}},
		{"smpp_server": tree{"listen": addresses[1]}}}})
	p := w.company("Banki", 1_000_000).binds(2, addresses...)
	p.sends(0, 300, 500)
	w.gateways[0].kill()
	p.sends(300, 600, 500)
	p.adds(2 * smpp.DefaultDeliverWindow)
}
