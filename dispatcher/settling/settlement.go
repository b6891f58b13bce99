// Package settling writes what carriers answer and deliver, with what follows from it, in one transaction for many
// messages. It also ends messages that no carrier has: cancelled ones, and those of the sandbox.
package settling

import (
	"sync"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/inbound/handsets"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/smpp"
)

// settleTimeout bounds one settling transaction.
const settleTimeout = 10 * time.Second

// Settler writes the answers (results) and receipts of one carrier's links. It
// commits everything that came during its last transaction as one: accepted
// segments, receipts, verdicts, webhooks, refunds. Only after that commit does it
// free slots and acknowledge receipts to the carrier. A commit that may have
// written nothing, because an earlier one wrote everything, still waits for the
// standby (postgres.ConfirmWith): the earlier one may not have reached it.
//
// While the database is down, results are kept and retried. Their slots stay
// taken, so the link stops. Receipts are refused for now; the carrier delivers them
// again.
type Settler struct {
	*core.Core
	Carrier *core.Carrier

	throttled, unwritable smpp.Seldom
	Answers               answers

	mu          sync.Mutex
	lingering   lingering
	results     []core.Result
	receipts    []Arrival
	late        []LateAnswer
	returned    []messages.Claim // to give back
	came        time.Time        // when the last of these came
	cameReceipt time.Time        // when the last receipt came
	gathering   bool             // gather waits, and only what is urgent wakes it
	wake        chan struct{}
}

// LateAnswer is an answer to a segment that was given up as unanswered.
type LateAnswer struct {
	Link    string
	Whose   int64
	Segment int // from 1
	Total   int
	smpp.Result
	At time.Time
}

// NewSettler returns the settler of a carrier.
func NewSettler(shared *core.Core, c *core.Carrier) *Settler {
	return &Settler{Core: shared, Carrier: c, wake: make(chan struct{}, 1), Answers: answers{wake: make(chan struct{}, 1)}}
}

// Take accepts a segment's result. It never blocks.
func (s *Settler) Take(r core.Result) {
	r.At = postgres.Moment(r.At) // only once, so that a retry writes the same
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, r)
	s.cameLocked(time.Now())
}

// unsettledMost is how many results may wait before turning messages away pauses.
const unsettledMost = 1_000

// Behind reports whether more than unsettledMost results wait.
func (s *Settler) Behind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.results) > unsettledMost
}

// Waiting returns how many results and receipts wait.
func (s *Settler) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.results) + len(s.receipts)
}

// Receive accepts a receipt or an MO. It never blocks: the link bounds the
// unanswered ones.
func (s *Settler) Receive(a Arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receipts = append(s.receipts, a)
	s.cameReceipt = time.Now()
	s.cameLocked(s.cameReceipt)
}

// TakeLate accepts a late answer. It never blocks.
func (s *Settler) TakeLate(a LateAnswer) {
	a.At = postgres.Moment(a.At)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, a)
	s.cameLocked(time.Now())
}

// PutBack gives back claims for which giveBack failed.
func (s *Settler) PutBack(claims []messages.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned = append(s.returned, claims...)
	s.cameLocked(time.Now())
}

// Settlement is the work of one transaction.
type Settlement struct {
	Results  []core.Result
	Receipts []Arrival
	Late     []LateAnswer
	returned []messages.Claim

	Again bool // a transaction with all of it failed, or its COMMIT was not answered
}

// Size returns how many answers, receipts and claims a settlement has.
func (w *Settlement) Size() int {
	return len(w.Results) + len(w.Receipts) + len(w.Late) + len(w.returned)
}

// halves cuts a settlement in two, in commit's order.
func (w *Settlement) halves() (first, second Settlement) {
	n := w.Size() / 2
	first.Results, second.Results = cut(w.Results, &n)
	first.Receipts, second.Receipts = cut(w.Receipts, &n)
	first.Late, second.Late = cut(w.Late, &n)
	first.returned, second.returned = cut(w.returned, &n)
	return first, second
}

func cut[T any](list []T, n *int) (first, second []T) {
	at := min(*n, len(list))
	*n -= at
	return list[:at:at], list[at:]
}

// Grab returns what has come, as the work of one transaction.
func (s *Settler) Grab() Settlement {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := Settlement{Results: s.results, Receipts: s.receipts, Late: s.late, returned: s.returned}
	// the next ones are about as many
	s.results, s.receipts = make([]core.Result, 0, len(w.Results)), make([]Arrival, 0, len(w.Receipts))
	s.late, s.returned = nil, nil
	s.gathering = false
	return w
}

func (s *Settler) grabReceipts() []Arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	arrivals := s.receipts
	s.receipts = nil
	return arrivals
}

// Arrival is a receipt or an MO that a carrier delivered, with its unanswered PDU.
type Arrival struct {
	receipts.Receipt
	Inbound *handsets.Inbound // nil: a receipt
	PDU     *smpp.Delivery
}

// The reasons for trying a second carrier. A closed set: they label a metric.
const (
	unroutable  = "unroutable"  // a submit_sm_resp: no route to the number
	undelivered = "undelivered" // a receipt with UNDELIV soon after the acceptance
)

// SecondReasons are all of them.
var SecondReasons = [...]string{unroutable, undelivered}

// secondTook maps messages that a second carrier took in one transaction to SecondReasons.
type secondTook map[int64]string

func (s secondTook) has(id int64) bool {
	_, has := s[id]
	return has
}
