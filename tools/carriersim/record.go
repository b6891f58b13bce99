package carriersim

import (
	"slices"
	"strings"
	"time"
)

// Address is an address as received.
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

// Concat is the concatenation information of a segment.
type Concat struct {
	Ref   uint16 `json:"ref"`
	Total uint8  `json:"total"`
	Seq   uint8  `json:"seq"`
	By    string `json:"by"` // "udh8", "udh16" or "sar"
}

// Submit is one submit_sm as received, and its response.
type Submit struct {
	At       time.Time `json:"at"`
	Session  int       `json:"session"` // the carrier's number of the connection, from 1
	SystemID string    `json:"system_id"`
	Sequence uint32    `json:"sequence"`
	Status   Status    `json:"status"`   // command_status of the response
	Answered bool      `json:"answered"` // false: there is no response
	Accepted bool      `json:"accepted"` // the message is accepted
	ID       string    `json:"id"`       // message_id of the response
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
	Body               []byte  `json:"-"`    // the PDU without its header
}

// Message is a message as a handset shows it: accepted submits, assembled by source,
// destination, reference and number of segments.
type Message struct {
	Source      string    `json:"source"`
	Destination string    `json:"destination"`
	Text        string    `json:"text"`     // of the segments received so far
	Encoding    string    `json:"encoding"` // gsm7, ucs2, latin1, ascii or binary
	Segments    int       `json:"segments"` // as announced in the segments
	Received    int       `json:"received"` // how many were received
	Complete    bool      `json:"complete"`
	InOrder     bool      `json:"in_order"`   // the segments came in order, on one session
	Duplicates  int       `json:"duplicates"` // identical segments received again
	Reference   uint16    `json:"reference"`
	IDs         []string  `json:"ids"` // by segment, as in the responses
	Fate        string    `json:"fate"`
	First       time.Time `json:"first"` // arrival of its first submit_sm
	Last        time.Time `json:"last"`  // … and of the last

	session int // of its last segment
}

// Violation is a violation of the protocol by the client.
type Violation struct {
	At       time.Time `json:"at"`
	Session  int       `json:"session"`
	Sequence uint32    `json:"sequence"`
	Command  string    `json:"command"`
	Status   Status    `json:"status"` // the status that the specification defines for it
	Text     string    `json:"text"`
}

// Stats has the counts since New or Reset; the first group is the current state.
type Stats struct {
	Carrier         string `json:"carrier"`
	Sessions        int    `json:"sessions"`         // bound now
	ReceiptsWaiting int    `json:"receipts_waiting"` // not sent yet, or not answered yet

	Connections uint64            `json:"connections"`
	Binds       uint64            `json:"binds"`
	BindRefused uint64            `json:"binds_refused"`
	Replaced    uint64            `json:"binds_replaced"` // closed in favour of a newer one
	Unbinds     uint64            `json:"unbinds"`        // unbind from the client
	Enquiries   uint64            `json:"enquiries"`
	Submits     uint64            `json:"submits"`
	Accepted    uint64            `json:"accepted"`
	Silent      uint64            `json:"silent"` // never answered
	Refused     map[Status]uint64 `json:"refused"`
	Duplicates  uint64            `json:"duplicates"` // accepted, and identical to one in the log
	Peak        int               `json:"peak"`       // most submits in one second
	Receipts    uint64            `json:"receipts"`   // sent for the first time
	Redelivered uint64            `json:"redelivered"`
	Confirmed   uint64            `json:"confirmed"` // answered with ESME_ROK
	LateAcks    uint64            `json:"late_acks"` // responses after AckTimeout: the receipt is delivered again
	Discarded   uint64            `json:"discarded"` // permanently refused, too old, or lost on purpose
	MO          uint64            `json:"mo"`

	Flooded        uint64 `json:"flooded"` // sent by Faults.FloodPerSec
	FloodTaken     uint64 `json:"flood_taken"`
	FloodRefused   uint64 `json:"flood_refused"`
	FloodThrottled uint64 `json:"flood_throttled"` // of the refused: with ESME_RTHROTTLED

	Violations uint64 `json:"violations"`
}

// Account is the activity of one system_id since New or Reset.
type Account struct {
	SystemID  string `json:"system_id"`
	Bound     int    `json:"bound"`      // binds now
	MostBound int    `json:"most_bound"` // most at the same time
	Submits   uint64 `json:"submits"`
	Peak      int    `json:"peak"` // most submit_sm within any second; 65,536 at most
}

// Accounts returns the activity of each system_id that was bound, by name.
func (c *Carrier) Accounts() []Account {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Account, 0, len(c.usage))
	for name, u := range c.usage {
		list = append(list, Account{SystemID: name, Bound: c.boundAs(name), MostBound: u.mostBound, Submits: u.submits,
			Peak: u.second.peak})
	}
	slices.SortFunc(list, func(a, b Account) int { return strings.Compare(a.SystemID, b.SystemID) })
	return list
}

// boundAs counts the binds of a system_id; the caller holds c.mu.
func (c *Carrier) boundAs(systemID string) (n int) {
	for s := range c.sessions {
		if s.mode != 0 && s.systemID == systemID {
			n++
		}
	}
	return n
}

// usage has the data of an Account.
type usage struct {
	mostBound int
	submits   uint64
	second    secondMeter
}

// usageOf returns a system_id's usage; the caller holds c.mu. A carrier without a fixed
// system_id counts the first thousand.
func (c *Carrier) usageOf(systemID string) *usage {
	u := c.usage[systemID]
	if u == nil {
		if len(c.usage) >= 1000 {
			return &usage{}
		}
		u = &usage{}
		c.usage[systemID] = u
	}
	return u
}

// secondMeter measures the highest number within any second, exactly. It keeps the times of
// the last second.
type secondMeter struct {
	times []int64 // a ring that grows
	first int
	count int
	peak  int
}

const secondMost = 1 << 16

func (m *secondMeter) add(now int64) {
	for m.count > 0 && now-m.times[m.first] >= int64(time.Second) {
		m.first = (m.first + 1) % len(m.times)
		m.count--
	}
	if m.count == len(m.times) && m.count < secondMost {
		grown := make([]int64, max(64, 2*m.count))
		for i := range m.count {
			grown[i] = m.times[(m.first+i)%len(m.times)]
		}
		m.times, m.first = grown, 0
	}
	if m.count < len(m.times) {
		m.times[(m.first+m.count)%len(m.times)] = now
		m.count++
	}
	m.peak = max(m.peak, m.count)
}

// Bound describes a bound session.
type Bound struct {
	Session  int       `json:"session"`
	SystemID string    `json:"system_id"`
	Mode     string    `json:"mode"` // bind_transceiver, bind_transmitter or bind_receiver
	Remote   string    `json:"remote"`
	Since    time.Time `json:"since"`
	Submits  int       `json:"submits"`
}

// Sessions returns the bound sessions in the order of their numbers.
func (c *Carrier) Sessions() []Bound {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Bound
	for s := range c.sessions {
		if s.mode != 0 {
			list = append(list, Bound{
				Session: s.number, SystemID: s.systemID, Mode: commandName(s.mode), Remote: s.conn.RemoteAddr().String(),
				Since: c.wall(s.opened), Submits: s.submits,
			})
		}
	}
	slices.SortFunc(list, func(a, b Bound) int { return a.Session - b.Session })
	return list
}
