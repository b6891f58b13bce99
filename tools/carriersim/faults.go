package carriersim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Faults are faults of a session or the whole carrier, which can change while it runs
// (Carrier.Faults, POST /faults). The zero value has none.
type Faults struct {
	RefuseConnections bool   `json:"refuse_connections"` // accepted by TCP and closed at once
	BindStatus        Status `json:"bind_status"`        // every bind is refused with it
	BindSilent        bool   `json:"bind_silent"`        // binds get no answer
	BindNack          bool   `json:"bind_nack"`          // a refused bind is answered with generic_nack
	BindSequence0     bool   `json:"bind_sequence_0"`    // a refused bind is answered with sequence_number 0
	// a refused bind is answered with the response of another bind
	BindOther     bool `json:"bind_other"`
	HalfOpen      bool `json:"half_open"`      // accepts everything and never responds
	StopReading   bool `json:"stop_reading"`   // the TCP window fills up
	EnquireSilent bool `json:"enquire_silent"` // enquire_link gets no answer
	// this carrier sends enquire_link at this interval; JSON "enquire_every"
	EnquireEvery time.Duration `json:"-"`

	SubmitStatus  Status  `json:"submit_status"`  // every submit_sm is refused with it
	SubmitSender  string  `json:"submit_sender"`  // only those of this source_addr; empty: all
	SubmitSilent  bool    `json:"submit_silent"`  // submit_sm is accepted, receipts come, the response does not
	RefuseRatio   float64 `json:"refuse_ratio"`   // this share of submit_sm is refused with RefuseStatus
	RefuseStatus  Status  `json:"refuse_status"`  // ESME_RTHROTTLED when zero
	NackEvery     int     `json:"nack_every"`     // every n-th submit_sm is answered with generic_nack
	EmptyIDs      bool    `json:"empty_ids"`      // accepted with an empty message_id
	WrongSequence bool    `json:"wrong_sequence"` // a response to no request precedes each response
	RespTwice     bool    `json:"resp_twice"`     // each response comes twice
	Congestion    uint8   `json:"congestion"`     // congestion_state in responses, 1-100; 0 = absent

	RespDelay  time.Duration `json:"-"` // added before responses; JSON "resp_delay": "150ms"
	RespJitter time.Duration `json:"-"` // up to this much more, so that responses change order; JSON "resp_jitter"

	NoReceipts       bool    `json:"no_receipts"`       // none at all
	ReceiptFirst     bool    `json:"receipt_first"`     // every receipt precedes its response
	ReceiptCopies    int     `json:"receipt_copies"`    // copies of each receipt
	ReceiptLoss      float64 `json:"receipt_loss"`      // this share of receipts is never sent
	HoldReceipts     bool    `json:"hold_receipts"`     // receipts wait until this is off again
	UnmarkedReceipts bool    `json:"unmarked_receipts"` // receipts have esm_class 0
	DigitReceipts    bool    `json:"digit_receipts"`    // stat:2 in their text
	LittleEndian     bool    `json:"little_endian"`     // the lengths of their TLVs
	UnknownPerSec    int     `json:"unknown_per_sec"`   // receipts a second for ids that were never issued
	// deliveries a second on each session, regardless of responses, never repeated
	FloodPerSec   int  `json:"flood_per_sec"`
	FloodOctets   int  `json:"flood_octets"`   // of text in each, in message_payload above 254; up to 65,000
	FloodSource   int  `json:"flood_source"`   // digits of their source_addr, 11 when zero; up to 65,000
	FloodReceipts bool `json:"flood_receipts"` // receipts for unknown ids, else MO texts
	UnbindAfter   int  `json:"unbind_after"`   // unbind after this many submit_sm of a session
	// connection closed instead of the response to submit_sm number n of a session
	DropAfter    int  `json:"drop_after"`
	HalfPDUAfter int  `json:"half_pdu_after"` // the same, after half a response
	ResetOnDrop  bool `json:"reset_on_drop"`  // closing sends RST at once; unsent data is lost
	GarbageAfter int  `json:"garbage_after"`  // garbage instead of the response to submit_sm number n
	// a header with LieLength instead of the response to submit_sm number n
	LieAfter  int    `json:"lie_after"`
	LieLength uint32 `json:"lie_length"` // the command_length of that header
	// each response is preceded by a request with an unknown command_id
	StrangeCommand bool `json:"strange_command"`

	Demands
}

// timesJSON writes durations as Go writes them ("150ms").
type timesJSON struct {
	Enquire string `json:"enquire_every"`
	Delay   string `json:"resp_delay"`
	Jitter  string `json:"resp_jitter"`
}

type plainFaults Faults

// MarshalJSON writes every fault by its JSON name, durations as text.
func (f Faults) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainFaults
		timesJSON
	}{plainFaults(f), timesJSON{f.EnquireEvery.String(), f.RespDelay.String(), f.RespJitter.String()}})
}

// UnmarshalJSON changes the given faults and keeps the others; unknown names are an
// error.
func (f *Faults) UnmarshalJSON(data []byte) error {
	body := struct {
		*plainFaults
		timesJSON
	}{plainFaults: (*plainFaults)(f)}
	if err := strictJSON(data, &body); err != nil {
		return fmt.Errorf("reading faults: %w", err)
	}
	for _, d := range []struct {
		name, text string
		field      *time.Duration
	}{
		{"enquire_every", body.Enquire, &f.EnquireEvery},
		{"resp_delay", body.Delay, &f.RespDelay},
		{"resp_jitter", body.Jitter, &f.RespJitter},
	} {
		if d.text == "" {
			continue
		}
		value, err := time.ParseDuration(d.text)
		if err != nil {
			return fmt.Errorf("reading faults: %s: %w", d.name, err)
		}
		*d.field = value
	}
	return nil
}

// faultText describes a fault by its JSON name.
type faultText struct{ name, does string }

// faultsDo describes each fault, in the order of Faults.
var faultsDo = []faultText{
	{"refuse_connections", "Connections are accepted by TCP and closed at once."},
	{"bind_status", "Every bind is refused with it."},
	{"bind_silent", "Binds get no answer."},
	{"bind_nack", "A refused bind is answered with generic_nack."},
	{"bind_sequence_0", "A refused bind is answered with sequence_number 0."},
	{"bind_other", "A refused bind is answered with the response of another bind."},
	{"half_open", "Accepts everything and sends nothing."},
	{"stop_reading", "The TCP window fills up."},
	{"enquire_silent", "An enquire_link gets no answer."},
	{"enquire_every", "This carrier sends enquire_link so often."},
	{"submit_status", "Every submit_sm is refused with it."},
	{"submit_sender", "Only those of this source_addr; empty: all."},
	{"submit_silent", "A submit_sm is accepted, receipts come, the response does not."},
	{"refuse_ratio", "This share of submit_sm is refused with `refuse_status`."},
	{"refuse_status", "That command_status; ESME_RTHROTTLED when zero."},
	{"nack_every", "Every n-th submit_sm is answered with generic_nack."},
	{"empty_ids", "Messages are accepted with an empty message_id."},
	{"wrong_sequence", "A response to no request precedes each response."},
	{"resp_twice", "Each response comes twice."},
	{"congestion", "The congestion_state in responses, 1-100; 0 = absent."},
	{"resp_delay", "So long a wait before each response."},
	{"resp_jitter", "Up to so much longer, so that responses change order."},
	{"no_receipts", "No receipts at all."},
	{"receipt_first", "Every receipt precedes its response."},
	{"receipt_copies", "Each receipt so many times."},
	{"receipt_loss", "This share of receipts is never sent."},
	{"hold_receipts", "Receipts wait until this is off again."},
	{"unmarked_receipts", "Receipts have esm_class 0."},
	{"digit_receipts", "The stat of receipts is a number: stat:2 for DELIVRD."},
	{"little_endian", "The lengths of their TLVs are in little-endian."},
	{"unknown_per_sec", "Receipts a second for ids never given."},
	{"flood_per_sec", "Deliveries a second on each session, whether they are answered or not, never again."},
	{"flood_octets", "Bytes of text in each, in message_payload above 254; up to 65,000."},
	{"flood_source", "Digits of their source_addr, 11 when zero; up to 65,000."},
	{"flood_receipts", "They are receipts for ids never given, else texts of a handset."},
	{"unbind_after", "Unbind after so many submit_sm of a session."},
	{"drop_after", "Connection closed instead of the answer to submit_sm number n of a session."},
	{"half_pdu_after", "The same, behind half a response."},
	{"reset_on_drop", "Closing sends RST at once, what was not yet sent is lost."},
	{"garbage_after", "Text that is no PDU, in place of the answer to submit_sm number n."},
	{"lie_after", "A header with `lie_length` in place of the answer to submit_sm number n."},
	{"lie_length", "The command_length of that header."},
	{"strange_command", "Each response is preceded by a request with an unknown command_id."},
}

// FaultsTable returns Faults as a Markdown table.
func FaultsTable() string {
	var table strings.Builder
	table.WriteString("| fault | what the carrier does |\n|---|---|\n")
	for _, f := range slices.Concat(faultsDo, demandsDo) {
		table.WriteString("| `" + f.name + "` | " + f.does + " |\n")
	}
	return table.String()
}
