package carriersim

import (
	"log/slog"
	"time"
)

// Options say what kind of carrier it is. The zero value is a well-behaved one
// that lets anybody bind, answers at once and sends a text receipt at once.
type Options struct {
	// Name stands on the page and in the log; "carrier" when empty.
	Name string
	// SystemID and Password are what a bind must give; empty accepts any.
	SystemID, Password string
	// SystemType, when not empty, must be given too.
	SystemType string
	// Seed fixes the message ids and every random choice, so that two runs play
	// the same. Zero numbers the messages from the clock: ids then do not come
	// back after a restart.
	Seed uint64
	// FirstID is the number of the first message, whatever the Seed; 0 = the
	// Seed's.
	FirstID uint64

	// RespDelay passes before a submit_sm_resp, ReceiptDelay between the
	// acceptance and the receipt.
	RespDelay, ReceiptDelay time.Duration
	// LateResponse and LateReceipt are the delays of the fates that are late;
	// 3 s and 10 s when zero.
	LateResponse, LateReceipt time.Duration
	// ReceiptLead is how long a receipt is ahead of its response where it comes
	// first; 200 ms when zero.
	ReceiptLead time.Duration
	// ReceiptGap lies between several notices about one message; 50 ms when zero.
	ReceiptGap time.Duration

	// TPS refuses with ESME_RTHROTTLED what comes above so many accepted
	// submit_sm in the last second; 0 = no limit.
	TPS int
	// Window refuses with ESME_RTHROTTLED, and records, what comes above so many
	// unanswered submit_sm on one session; 0 = no limit.
	Window int
	// MaxSessions refuses further binds with ESME_RALYBND; 64 when zero.
	MaxSessions int

	// IDs is the form of message ids, Receipts the form of receipts.
	IDs      IDFormat
	Receipts ReceiptStyle
	// NoReceipts makes a carrier that confirms by submit_sm_resp alone.
	NoReceipts bool
	// EchoReference puts user_message_reference of the submit into its receipts.
	EchoReference bool
	// NoFates has every recipient delivered, whatever the last digits: for load.
	NoFates bool
	// Alphabet is what data_coding 0 means here.
	Alphabet Alphabet
	// Lenient accepts what breaks the protocol and only records it.
	Lenient bool

	// ReceiptWindow is how many receipts may be unanswered on one session; 100 when zero.
	ReceiptWindow int
	// AckTimeout is how long a deliver_sm_resp may take before the receipt is
	// delivered again; 30 s when zero.
	AckTimeout time.Duration
	// RedeliverDelay passes before what was refused for the moment is delivered
	// again; 5 s when zero. RedeliverFor is how long that goes on; 24 h when zero.
	RedeliverDelay, RedeliverFor time.Duration

	// BindTimeout closes a connection that has not bound; 10 s when zero.
	BindTimeout time.Duration
	// IdleTimeout closes a session from which nothing came for so long; 0 = never.
	IdleTimeout time.Duration

	// MaxLog is how many submits are remembered, MaxPending how many receipts may
	// wait (past it: ESME_RMSGQFUL); 100,000 and 500,000 when zero.
	MaxLog, MaxPending int

	// Faults are the faults from the start; Carrier.Faults changes them later.
	Faults Faults
	// Log says who came and went, never a number, text or password; nil = silent.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "carrier"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.LateResponse, 3 * time.Second}, {&o.LateReceipt, 10 * time.Second},
		{&o.ReceiptLead, 200 * time.Millisecond}, {&o.ReceiptGap, 50 * time.Millisecond},
		{&o.AckTimeout, 30 * time.Second}, {&o.RedeliverDelay, 5 * time.Second},
		{&o.RedeliverFor, 24 * time.Hour}, {&o.BindTimeout, 10 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	for _, n := range []struct {
		field *int
		value int
	}{{&o.MaxSessions, 64}, {&o.ReceiptWindow, 100}, {&o.MaxLog, 100_000}, {&o.MaxPending, 500_000}} {
		if *n.field <= 0 {
			*n.field = n.value
		}
	}
	return o
}

// Alphabet is what a carrier takes data_coding 0 for, the "SMSC default
// alphabet" that SMPP 3.4 leaves open.
type Alphabet uint8

// The alphabets met behind data_coding 0.
const (
	GSM7 Alphabet = iota // one septet an octet
	Latin1
	ASCII
)

// ReceiptForm is where a receipt carries what it says.
type ReceiptForm uint8

// The forms of a receipt.
const (
	ReceiptText    ReceiptForm = iota // text of Appendix B in short_message
	ReceiptTextTLV                    // the text, and receipted_message_id, message_state, network_error_code
	ReceiptTLV                        // the TLVs only, short_message empty
	ReceiptPayload                    // the text in message_payload, short_message empty
)

// ReceiptStyle is the form of a carrier's receipts with its habits.
type ReceiptStyle struct {
	Form    ReceiptForm
	DataSM  bool // in data_sm (text forms then travel in message_payload)
	Seconds bool // dates of 12 digits instead of 10
	Vendor  bool // four-digit err, fields of the vendor's own, vendor TLVs
	Sparse  bool // id and stat only, in another order and case
	UDHI    bool // esm_class with the UDH bit set although no UDH follows
}
