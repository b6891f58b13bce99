package carriersim

import "time"

// Address is an address as it stood on the wire.
type Address struct {
	TON  uint8  `json:"ton"`
	NPI  uint8  `json:"npi"`
	Addr string `json:"addr"`
}

// TLV is one optional parameter.
type TLV struct {
	Tag   uint16 `json:"tag"`
	Value []byte `json:"value"`
}

// Concat is what a segment says about the message it belongs to.
type Concat struct {
	Ref   uint16 `json:"ref"`
	Total uint8  `json:"total"`
	Seq   uint8  `json:"seq"`
	By    string `json:"by"` // "udh8", "udh16" or "sar"
}

// Submit is one submit_sm as it came, and what was answered.
type Submit struct {
	At       time.Time `json:"at"`
	Session  int       `json:"session"` // the carrier's number of the connection, from 1
	SystemID string    `json:"system_id"`
	Sequence uint32    `json:"sequence"`
	Status   Status    `json:"status"`   // command_status of the answer
	Answered bool      `json:"answered"` // false: there was, or will be, no answer
	Accepted bool      `json:"accepted"` // the carrier carries it
	ID       string    `json:"id"`       // message_id of the answer
	Fate     string    `json:"fate"`

	ServiceType        string  `json:"service_type"`
	Source             Address `json:"source"`
	Destination        Address `json:"destination"`
	ESMClass           uint8   `json:"esm_class"`
	ProtocolID         uint8   `json:"protocol_id"`
	Priority           uint8   `json:"priority"`
	Schedule           string  `json:"schedule_delivery_time"`
	Validity           string  `json:"validity_period"`
	RegisteredDelivery uint8   `json:"registered_delivery"`
	ReplaceIfPresent   uint8   `json:"replace_if_present"`
	DataCoding         uint8   `json:"data_coding"`
	DefaultMessageID   uint8   `json:"sm_default_msg_id"`
	ShortMessage       []byte  `json:"short_message"`
	TLVs               []TLV   `json:"tlvs,omitempty"`
	Concat             *Concat `json:"concat,omitempty"`
	Text               string  `json:"text"` // decoded, without UDH
	Body               []byte  `json:"-"`    // the PDU behind its header
}

// Message is what a handset would show: accepted submits put together by
// source, destination, reference and number of segments.
type Message struct {
	Source      string    `json:"source"`
	Destination string    `json:"destination"`
	Text        string    `json:"text"`     // of the segments that are there
	Encoding    string    `json:"encoding"` // gsm7, ucs2, latin1, ascii or binary
	Segments    int       `json:"segments"` // as announced
	Received    int       `json:"received"` // how many of them are there
	Complete    bool      `json:"complete"`
	InOrder     bool      `json:"in_order"`   // the segments came in their order, on one session
	Duplicates  int       `json:"duplicates"` // segments that came again, octet for octet
	Reference   uint16    `json:"reference"`
	IDs         []string  `json:"ids"` // by segment, as in the responses
	Fate        string    `json:"fate"`
	First       time.Time `json:"first"` // arrival of its first submit_sm
	Last        time.Time `json:"last"`  // … and of its last

	session int // of its last segment
}

// Violation is a breach of the protocol by the client.
type Violation struct {
	At       time.Time `json:"at"`
	Session  int       `json:"session"`
	Sequence uint32    `json:"sequence"`
	Command  string    `json:"command"`
	Status   Status    `json:"status"` // what the specification has for it
	Text     string    `json:"text"`
}

// Stats counts since New or Reset; the first group is the present state.
type Stats struct {
	Carrier         string `json:"carrier"`
	Sessions        int    `json:"sessions"`         // bound now
	ReceiptsWaiting int    `json:"receipts_waiting"` // not yet sent, or sent and not yet answered

	Connections uint64            `json:"connections"`
	Binds       uint64            `json:"binds"`
	BindRefused uint64            `json:"binds_refused"`
	Unbinds     uint64            `json:"unbinds"` // unbind from the client
	Enquiries   uint64            `json:"enquiries"`
	Submits     uint64            `json:"submits"`
	Accepted    uint64            `json:"accepted"`
	Silent      uint64            `json:"silent"` // never answered
	Refused     map[Status]uint64 `json:"refused"`
	Duplicates  uint64            `json:"duplicates"` // accepted, and octet for octet equal to one in the log
	Peak        int               `json:"peak"`       // most submits in one second
	Receipts    uint64            `json:"receipts"`   // sent for the first time
	Redelivered uint64            `json:"redelivered"`
	Confirmed   uint64            `json:"confirmed"` // answered with ESME_ROK
	LateAcks    uint64            `json:"late_acks"` // answers past AckTimeout: the receipt was or will be told again
	Discarded   uint64            `json:"discarded"` // refused for good, too old, or lost on purpose
	MO          uint64            `json:"mo"`

	Flooded      uint64 `json:"flooded"` // sent by Faults.FloodPerSec
	FloodTaken   uint64 `json:"flood_taken"`
	FloodRefused uint64 `json:"flood_refused"`

	Violations uint64 `json:"violations"`
}
