package carriersim

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Options of a carrier. The zero value is a well-behaved carrier: it accepts any bind, and
// sends each response and each text receipt at once.
type Options struct {
	// Name is shown on the page and in the log; "carrier" when empty.
	Name string
	// SystemID and Password are required in a bind; empty accepts any.
	SystemID, Password string
	// SystemType, if not empty, is required too.
	SystemType string
	// Seed determines the message ids and every random choice, so that two runs are equal.
	// With zero, ids start from the clock and do not repeat after a restart.
	Seed uint64
	// FirstID is the number of the first message; 0 = derived from Seed.
	FirstID uint64

	// RespDelay is the delay of a submit_sm_resp, ReceiptDelay the time from acceptance
	// to the receipt.
	RespDelay, ReceiptDelay time.Duration
	// LateResponse and LateReceipt are the delays of the late fates; 3 s and 10 s when
	// zero.
	LateResponse, LateReceipt time.Duration
	// ReceiptLead is how long a receipt precedes its response in the fates where it comes
	// first; 200 ms when zero.
	ReceiptLead time.Duration
	// ReceiptGap is the time between several notices about one message; 50 ms when zero.
	ReceiptGap time.Duration

	// TPS limits the accepted submit_sm in any second; more are refused with
	// ESME_RTHROTTLED; 0 = no limit.
	TPS int
	// Window limits the unanswered submit_sm of a session; more are refused with
	// ESME_RTHROTTLED and recorded as violations; 0 = no limit.
	Window int
	// MaxSessions limits the binds; more are refused with ESME_RALYBND; 64 when zero. With
	// ClosesOlder it limits those of each system_id, and a new bind closes the oldest.
	MaxSessions int
	ClosesOlder bool

	// IDs is the form of message ids, Receipts the form of receipts.
	IDs      IDFormat
	Receipts ReceiptStyle
	// NoReceipts makes a carrier without receipts: submit_sm_resp is the only confirmation.
	NoReceipts bool
	// EchoReference puts user_message_reference of the submit into its receipts.
	EchoReference bool
	// NoFates delivers to every recipient, whatever its last digits: for load tests.
	NoFates bool
	// Alphabet is the meaning of data_coding 0.
	Alphabet Alphabet
	// Lenient accepts requests that violate the protocol and only records them.
	Lenient bool

	// ReceiptWindow limits the unanswered receipts of one session; 100 when zero.
	ReceiptWindow int
	// AckTimeout is how long a deliver_sm_resp may take before the receipt is delivered
	// again; 30 s when zero.
	AckTimeout time.Duration
	// RedeliverDelay is the time before a temporarily refused delivery is repeated; 5 s
	// when zero. RedeliverFor is how long it is repeated; 24 h when zero.
	RedeliverDelay, RedeliverFor time.Duration

	// BindTimeout closes a connection that has not bound; 10 s when zero.
	BindTimeout time.Duration
	// IdleTimeout closes a session after this silence; 0 = never.
	IdleTimeout time.Duration

	// MaxLog limits the submits that are kept, MaxPending the receipts that wait (above it
	// submit_sm gets ESME_RMSGQFUL); 100,000 and 500,000 when zero.
	MaxLog, MaxPending int

	// Faults are the initial faults; Carrier.Faults changes them.
	Faults Faults
	// Log gets connections and binds, never a number, text or password; nil = no log.
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

// Alphabet is a carrier's meaning of data_coding 0, the "SMSC default alphabet" that SMPP
// 3.4 leaves undefined.
type Alphabet uint8

// Alphabets that carriers use for data_coding 0.
const (
	GSM7 Alphabet = iota // one septet a byte
	Latin1
	ASCII
)

// ReceiptForm is the place of a receipt's data.
type ReceiptForm uint8

// Forms of a receipt.
const (
	ReceiptText    ReceiptForm = iota // text of Appendix B in short_message
	ReceiptTextTLV                    // the text, and receipted_message_id, message_state, network_error_code
	ReceiptTLV                        // the TLVs only, short_message empty
	ReceiptPayload                    // the text in message_payload, short_message empty
)

// ReceiptStyle is the form of a carrier's receipts and its peculiarities.
type ReceiptStyle struct {
	Form    ReceiptForm
	DataSM  bool // in data_sm (text forms then travel in message_payload)
	Seconds bool // dates of 12 digits instead of 10
	Vendor  bool // four-digit err, vendor fields, vendor TLVs
	Sparse  bool // id and stat only, in another order and case
	UDHI    bool // esm_class has the UDH bit although no UDH follows
	Oddities
}

// Names of formats, forms and alphabets in flags and JSON.
var (
	idFormatNames = []string{"decimal", "hex", "hex-then-decimal", "decimal-then-hex", "zero-padded", "trimmed", "case",
		"uuid", "long"}
	receiptFormNames = []string{"text", "text-tlv", "tlv", "payload"}
	alphabetNames    = []string{"gsm7", "latin1", "ascii"}
)

func nameOf(n uint8, names []string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("unknown (%d)", n)
}

func byName[T ~uint8](into *T, text []byte, what string, names []string) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("%s %q: not one of %s", what, text, strings.Join(names, ", "))
	}
	*into = T(i)
	return nil
}

// String returns the name, such as "hex-then-decimal".
func (f IDFormat) String() string { return nameOf(uint8(f), idFormatNames) }

// MarshalText writes the name.
func (f IDFormat) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a name.
func (f *IDFormat) UnmarshalText(text []byte) error {
	return byName(f, text, "message id format", idFormatNames)
}

// String returns the name, such as "text-tlv".
func (f ReceiptForm) String() string { return nameOf(uint8(f), receiptFormNames) }

// MarshalText writes the name.
func (f ReceiptForm) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads a name.
func (f *ReceiptForm) UnmarshalText(text []byte) error {
	return byName(f, text, "receipt form", receiptFormNames)
}

// String returns the name, such as "gsm7".
func (a Alphabet) String() string { return nameOf(uint8(a), alphabetNames) }

// MarshalText writes the name.
func (a Alphabet) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads a name.
func (a *Alphabet) UnmarshalText(text []byte) error {
	return byName(a, text, "alphabet", alphabetNames)
}
