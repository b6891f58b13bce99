package configs

import (
	"time"

	"intumwa/dispatcher"
	"intumwa/smpp"
)

// Carrier is one mobile operator: which numbers it takes and how it talks.
type Carrier struct {
	Name             string                      `yaml:"name"`
	Prefixes         []string                    `yaml:"prefixes"`         // national digits; the longest match wins
	NumberOverrides  []string                    `yaml:"number_overrides"` // whole national numbers taken whatever the prefixes say
	Default          bool                        `yaml:"default"`          // takes what no prefix matches
	Confirm          Word[dispatcher.Confirm]    `yaml:"confirm" default:"receipt"`
	OnReceiptTimeout Word[Timeout]               `yaml:"on_receipt_timeout" default:"failed"`
	ReceiptTimeout   time.Duration               `yaml:"receipt_timeout" default:"1h" min:"1"` // past the validity
	MessageIDFormat  Word[dispatcher.IDFormat]   `yaml:"message_id_format" default:"auto"`
	ReceiptStates    map[string]Word[Outcome]    `yaml:"receipt_states"` // stat text -> what it says
	Concat           Word[dispatcher.Concat]     `yaml:"concat" default:"udh8"`
	Alphabet         Word[dispatcher.Alphabet]   `yaml:"alphabet" default:"gsm7"` // what data_coding 0 means there
	ValidityPeriod   Word[dispatcher.Validity]   `yaml:"validity_period" default:"relative"`
	SourceTON        int                         `yaml:"source_ton" default:"5" min:"0" max:"255"`
	SourceNPI        int                         `yaml:"source_npi" default:"0" min:"0" max:"255"`
	DestTON          int                         `yaml:"dest_ton" default:"1" min:"0" max:"255"`
	DestNPI          int                         `yaml:"dest_npi" default:"1" min:"0" max:"255"`
	ServiceType      string                      `yaml:"service_type"`
	TLVs             map[string]string           `yaml:"tlvs"`                                  // tag -> value, on every submit_sm; see Carrier.StaticTLVs
	ErrorClasses     map[string]Word[smpp.Class] `yaml:"error_classes"`                         // command_status -> class; see Carrier.Classes
	UserReference    bool                        `yaml:"user_message_reference" default:"true"` // sent, and used where the carrier echoes it
	OnAmbiguous      Word[dispatcher.Ambiguous]  `yaml:"on_ambiguous" default:"resend"`
	UnknownHold      time.Duration               `yaml:"unknown_hold" default:"5m" min:"1"` // how long an unanswered submit_sm is waited for while its bind lives
	RetryMin         time.Duration               `yaml:"retry_min" default:"1s" min:"1"`
	RetryMax         time.Duration               `yaml:"retry_max" default:"1m" min:"1"`
	Failover         []string                    `yaml:"failover"`
	FailoverAfter    time.Duration               `yaml:"failover_after" default:"10s" min:"1"`
	SecondCarrier    string                      `yaml:"second_carrier"`                                 // asked once for a message that fails here
	SecondWithin     time.Duration               `yaml:"second_carrier_within" default:"1m" min:"0"`     // of its acceptance, for a receipt that says UNDELIV
	MaxUnmatched     int                         `yaml:"max_unmatched_per_hour" default:"50000" min:"1"` // receipts that match nothing, kept in any hour
	MaxInbound       int                         `yaml:"max_inbound_per_hour" default:"20000" min:"1"`   // segments of messages from handsets, kept in any hour
	Links            []Link                      `yaml:"links" min:"1"`
}

// Link is one account at a carrier's SMSC.
type Link struct {
	Name            string              `yaml:"name"`
	Address         Address             `yaml:"address"` // host:port
	TLS             TLS                 `yaml:"tls"`
	Bind            Word[smpp.BindMode] `yaml:"bind" default:"transceiver"`
	Binds           int                 `yaml:"binds" default:"1" min:"1" max:"64"` // binds to open; window and tps count for all together
	SystemID        string              `yaml:"system_id"`
	Password        Secret              `yaml:"password"`
	PasswordFile    SecretFile          `yaml:"password_file"`
	SystemType      string              `yaml:"system_type"`
	Window          int                 `yaml:"window" default:"100" min:"1" max:"1000"` // outstanding submit_sm
	TPS             int                 `yaml:"tps" default:"100" min:"0"`               // submit_sm a second, 0 = unpaced
	Weight          int                 `yaml:"weight" default:"1" min:"1" max:"1000"`   // share of the carrier's traffic beside its other links
	EnquireLink     time.Duration       `yaml:"enquire_link" default:"30s" min:"1s"`     // idle time before the peer is asked whether it lives
	EnquireTimeout  time.Duration       `yaml:"enquire_timeout" default:"10s" min:"1s"`  // silence after that question which ends the session
	ResponseTimeout time.Duration       `yaml:"response_timeout" default:"10s" min:"1s"` // of a submit_sm; past it the alarm is raised
	ConnectTimeout  time.Duration       `yaml:"connect_timeout" default:"10s" min:"1s"`  // TCP and TLS
	BindTimeout     time.Duration       `yaml:"bind_timeout" default:"30s" min:"1s"`     // from the bind to its answer
}

// TLS is either true or false, or an object (which means true).
type TLS struct {
	Enabled    bool   `yaml:"-"`
	CA         Path   `yaml:"ca"`          // PEM file of the authorities to trust; empty = the system's
	Cert       Path   `yaml:"cert"`        // PEM file of the client certificate
	Key        Path   `yaml:"key"`         // PEM file of its key
	ServerName string `yaml:"server_name"` // name expected in the server's certificate; empty = the address's host
}
