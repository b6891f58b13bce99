package dispatcher

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

// settler writes the answers (results) and receipts of one carrier's links. It
// commits everything that came during its last transaction as one: accepted
// segments, receipts, verdicts, webhooks, refunds. Only after that commit does it
// free slots and acknowledge receipts to the carrier. A commit that may have
// written nothing, because an earlier one wrote everything, still waits for the
// standby (postgres.ConfirmWith): the earlier one may not have reached it.
//
// While the database is down, results are kept and retried. Their slots stay
// taken, so the link stops. Receipts are refused for now; the carrier delivers them
// again.
type settler struct {
	*core.Core
	carrier *core.Carrier

	throttled, unwritable smpp.Seldom
	answers               answers

	mu          sync.Mutex
	lingering   lingering
	results     []core.Result
	receipts    []arrival
	late        []lateAnswer
	returned    []messages.Claim // to give back
	came        time.Time        // when the last of these came
	cameReceipt time.Time        // when the last receipt came
	gathering   bool             // gather waits, and only what is urgent wakes it
	wake        chan struct{}
}

// lateAnswer is an answer to a segment that was given up as unanswered.
type lateAnswer struct {
	link      string
	messageID int64
	segment   int // from 1
	total     int
	smpp.Result
	at time.Time
}

// newSettler returns the settler of a carrier.
func newSettler(shared *core.Core, c *core.Carrier) *settler {
	return &settler{Core: shared, carrier: c, wake: make(chan struct{}, 1), answers: answers{wake: make(chan struct{}, 1)}}
}

// take accepts a segment's result. It never blocks.
func (s *settler) take(r core.Result) {
	r.At = postgres.Moment(r.At) // only once, so that a retry writes the same
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, r)
	s.cameLocked(time.Now())
}

// unsettledMost is how many results may wait before turning messages away pauses.
const unsettledMost = 1_000

// behind reports whether more than unsettledMost results wait.
func (s *settler) behind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.results) > unsettledMost
}

// waiting returns how many results and receipts wait.
func (s *settler) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.results) + len(s.receipts)
}

// receive accepts a receipt or an MO. It never blocks: the link bounds the
// unanswered ones.
func (s *settler) receive(a arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receipts = append(s.receipts, a)
	s.cameReceipt = time.Now()
	s.cameLocked(s.cameReceipt)
}

// takeLate accepts a late answer. It never blocks.
func (s *settler) takeLate(a lateAnswer) {
	a.at = postgres.Moment(a.at)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, a)
	s.cameLocked(time.Now())
}

// putBack gives back claims for which giveBack failed.
func (s *settler) putBack(claims []messages.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned = append(s.returned, claims...)
	s.cameLocked(time.Now())
}

// settlement is the work of one transaction.
type settlement struct {
	results  []core.Result
	receipts []arrival
	late     []lateAnswer
	returned []messages.Claim

	again bool // a transaction with all of it failed, or its COMMIT was not answered
}

// size returns how many answers, receipts and claims a settlement has.
func (w *settlement) size() int {
	return len(w.results) + len(w.receipts) + len(w.late) + len(w.returned)
}

// halves cuts a settlement in two, in commit's order.
func (w *settlement) halves() (first, second settlement) {
	n := w.size() / 2
	first.results, second.results = cut(w.results, &n)
	first.receipts, second.receipts = cut(w.receipts, &n)
	first.late, second.late = cut(w.late, &n)
	first.returned, second.returned = cut(w.returned, &n)
	return first, second
}

func cut[T any](list []T, n *int) (first, second []T) {
	at := min(*n, len(list))
	*n -= at
	return list[:at:at], list[at:]
}

// grab returns what has come, as the work of one transaction.
func (s *settler) grab() settlement {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := settlement{results: s.results, receipts: s.receipts, late: s.late, returned: s.returned}
	s.results, s.receipts = make([]core.Result, 0, len(w.results)), make([]arrival, 0, len(w.receipts)) // the next ones are about as many
	s.late, s.returned = nil, nil
	s.gathering = false
	return w
}

func (s *settler) grabReceipts() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	arrivals := s.receipts
	s.receipts = nil
	return arrivals
}

// arrival is a receipt or an MO that a carrier delivered, with its unanswered PDU.
type arrival struct {
	receipts.Receipt
	inbound *handsets.Inbound // nil: a receipt
	pdu     *smpp.Delivery
}

// The reasons for trying a second carrier. A closed set: they label a metric.
const (
	unroutable  = "unroutable"  // a submit_sm_resp: no route to the number
	undelivered = "undelivered" // a receipt with UNDELIV soon after the acceptance
)

var secondReasons = [...]string{unroutable, undelivered}

// secondTook maps messages that a second carrier took in one transaction to secondReasons.
type secondTook map[int64]string

func (s secondTook) has(id int64) bool {
	_, has := s[id]
	return has
}
