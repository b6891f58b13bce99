package configs

import "time"

// Carrier is one mobile operator: the numbers it serves and its links.
type Carrier struct {
	// Its name everywhere. Do not rename a carrier that has waiting messages: they are stored under its name.
	Name string `yaml:"name" required:"true" example:"lumitel"`
	// A preset of this carrier's other keys: strict_3_4 (the defaults), old_3_3 or loose_3_4 (docs/carriers.md). A key
	// that is set wins.
	Profile string `yaml:"profile" default:"strict_3_4" oneof:"strict_3_4 old_3_3 loose_3_4"`
	// First digits of national numbers, or all 8. The longest match among all carriers wins.
	Prefixes []string `yaml:"prefixes" example:"61,62,65,66,67,68,69"`
	// This carrier takes numbers that match no prefix. At most one carrier; without one, such numbers get 400.
	Default bool `yaml:"default"`
	// What makes a message sent: receipt, or submit (the submit_sm_resp) for a carrier without receipts.
	Confirm string `yaml:"confirm" default:"receipt" oneof:"receipt submit"`
	// Status of a message whose receipt never came.
	OnReceiptTimeout string `yaml:"on_receipt_timeout" default:"failed" oneof:"failed sent"`
	// How long to wait for a receipt after the validity.
	ReceiptTimeout time.Duration `yaml:"receipt_timeout" default:"1h" min:"1s" max:"720h"`
	// How ids in receipts relate to those in submit_sm_resp. With auto, all formats are tried for receipts that name their
	// handset. Set the format if they do not, or if ids count from 1. If wrong: no receipt matches.
	MessageIDFormat string `yaml:"message_id_format" default:"auto" oneof:"auto same hex_to_decimal decimal_to_hex"`
	// Changes the meaning of a receipt's stat: sent, failed or none, e.g. {ACCEPTD: none} if that is "in our queue".
	ReceiptStates map[string]string `yaml:"receipt_states" oneof:"sent failed none"`
	// A receipt's stat may be a number of SMPP 3.4, 5.2.28: stat:2 is DELIVRD. If the carrier's numbers mean something
	// else, map them in receipt_states, e.g. {"1": sent}.
	ReceiptDigits bool `yaml:"receipt_state_digits"`
	// Its receipts are texts without the receipt bits of esm_class. They settle a segment only if both id and handset are
	// its own. Without this key they are kept as unmatched. A handset could forge one of its own messages.
	UnmarkedReceipts bool `yaml:"receipts_without_esm_class"`
	// alphabet, packed (7-bit septets) or utf8: texts from handsets in data_coding 0. UTF-8 beyond ASCII is recognised
	// without it. If wrong: texts are unreadable, or @ and $ change.
	InboundCoding string `yaml:"inbound_coding" default:"alphabet" oneof:"alphabet packed utf8"`
	// Parts of texts from handsets begin with a UDH though esm_class does not say so. If wrong: each part comes alone,
	// behind strange characters.
	HiddenUDH bool `yaml:"udh_without_bit"`
	// How long messages are split; udh16 costs one character per segment. If wrong: handsets show segments separately.
	Concat string `yaml:"concat" default:"udh8" oneof:"udh8 udh16 sar payload"`
	// The carrier's data_coding 0, in both directions. If wrong: @, $, _ and accents change.
	Alphabet   string     `yaml:"alphabet" default:"gsm7" oneof:"gsm7 latin1 ascii"`
	DataCoding DataCoding `yaml:"data_coding"`
	// Message class in data_coding: 0x10 plus it for GSM 7-bit, 0x18 for UCS-2. Class 0 is shown and not stored.
	MessageClass string `yaml:"message_class" default:"none" oneof:"none 0 1 2 3"`
	// priority_flag of single sends; batches have 0.
	SinglePriority int `yaml:"single_priority" default:"0" min:"0" max:"3"`
	// 1 asks for a receipt of success and of failure, 0 for none.
	RegisteredDelivery int `yaml:"registered_delivery" default:"1" min:"0" max:"31"`
	// Form of the validity in submit_sm. Some SMSCs refuse relative ones (ESME_RINVEXPIRY).
	ValidityPeriod string `yaml:"validity_period" default:"relative" oneof:"relative absolute none"`
	SourceTONNPI   TONNPI `yaml:"source_ton_npi"`
	// TON and NPI of the recipient: international, E.164.
	DestTONNPI []int `yaml:"dest_ton_npi" default:"1,1"`
	// Form of the recipient: international (25779123456), plus (+257…), zeros (00257…), national (79123456) or trunk
	// (079123456).
	DestForm string `yaml:"dest_form" default:"international" oneof:"international plus zeros national trunk"`
	// At most 5 bytes; some carriers bill or route by it.
	ServiceType string `yaml:"service_type"`
	// Optional parameters of every submit_sm: {0x1401: abc, 0x1402: "hex:00FF"}.
	TLVs map[string]string `yaml:"tlvs"`
	// Changes the class of a command_status: throttled, temporary, permanent, unroutable, configuration, e.g. {0x45:
	// permanent}.
	ErrorClasses map[string]string `yaml:"error_classes" oneof:"throttled temporary permanent unroutable configuration"`
	// command_status for a delivery that cannot be stored now, such as 0x08, after which this carrier delivers again.
	// Empty: 0x14, or 0x58 above the hourly limit.
	DeliveryRefusal string `yaml:"delivery_refusal"`
	// Sent with every segment. A receipt that echoes it settles a segment whose submit_sm_resp was lost. Set false if the
	// carrier refuses it (ESME_ROPTPARNOTALLWD).
	UserReference bool `yaml:"user_message_reference" default:"true"`
	// What to do with a segment whose submit_sm_resp was lost: resend (may arrive twice), hold (wait for its receipt until
	// the message expires), fail.
	OnAmbiguous string `yaml:"on_ambiguous" default:"resend" oneof:"resend hold fail"`
	// How long to wait for a submit_sm_resp in an open session before on_ambiguous; longer than enquire_link plus its 10s.
	UnknownHold time.Duration `yaml:"unknown_hold" default:"5m" min:"1s" max:"24h"`
	// Carriers to try, in this order, when every link of this one has been down for 10s. They must reach the same numbers.
	Failover []string `yaml:"failover"`
	// Carrier to try once for a message that this one refuses as unroutable, or reports as UNDELIV within a minute.
	SecondCarrier string `yaml:"second_carrier"`
	// required: the network's operator registers each sender name. A sender about which admin sender carrier set has
	// recorded nothing then gets 400 before anything is charged: docs/customers.md.
	SenderRegistration string `yaml:"sender_registration" default:"not_needed" oneof:"required not_needed"`
	// The binds at its SMSCs; at least one. An account that may bind several times has a link for each, with its part of
	// window and tps.
	Links []Link `yaml:"links" required:"true"`
}

// Link is one bind at a carrier's SMSC.
type Link struct {
	// Its name, unique among all carriers.
	Name string `yaml:"name" required:"true" example:"lumitel-1"`
	// host:port of the SMSC. This or addresses is required.
	Address string `yaml:"address" example:"127.0.0.1:2775"`
	// More hosts of the same account. They take turns while one does not connect or does not bind; after a lost bind the
	// first is tried first.
	Addresses []string `yaml:"addresses"`
	// true, false, or files in PEM: {ca: authorities to trust, cert: ours, key: its key, server_name: the name in the
	// SMSC's certificate}. TLS 1.2 at least.
	TLS TLS `yaml:"tls" default:"false"`
	// transmitter_receiver opens two sessions, for SMSCs without transceiver; transmitter or receiver only that one. A
	// receiver carries no submits.
	Bind string `yaml:"bind" default:"transceiver" oneof:"transceiver transmitter_receiver transmitter receiver"`
	// SMPP 3.4 has at most 15 bytes.
	SystemID string `yaml:"system_id" required:"true" example:"demo"`
	// SMPP 3.4 has at most 8 bytes; longer ones are sent. From a file it is read at every reload.
	Password Secret `yaml:"password" example:"demo"`
	// SMPP 3.4 has at most 12 bytes; few carriers check it.
	SystemType string `yaml:"system_type"`
	// 0x33, 0x34 or 0x50. With 0x33 no optional parameters are sent. If wrong: the bind is refused.
	Version string `yaml:"interface_version" default:"0x34"`
	// Which addresses' messages a receiver gets; at most 40 bytes. Most carriers want it empty; some refuse the bind, or
	// deliver nothing, without it.
	AddressRange string `yaml:"address_range"`
	// TON and NPI of address_range.
	RangeTONNPI []int    `yaml:"address_range_ton_npi" default:"0,0"`
	Receiver    Receiver `yaml:"receiver"`
	// Our IP address, if the carrier lets in only that; empty: the system chooses.
	LocalAddress string `yaml:"local_address"`
	// Maximum of unanswered submit_sm. The rate is at most window / latency. A lost session can duplicate as many.
	Window int `yaml:"window" default:"100" min:"1" max:"1000"`
	// submit_sm per second, evenly spread: the contract's rate. 0: no limit.
	TPS int `yaml:"tps" default:"100" min:"0" max:"100000"`
	// Silence before an enquire_link is sent. As much again (at most 10s) without an answer ends the session. Keep it
	// below the idle timeouts of firewall and SMSC.
	EnquireLink time.Duration `yaml:"enquire_link" default:"30s" min:"1s" max:"1h"`
	// After this time an unanswered submit_sm is logged and counted as overdue. It is not sent again for that.
	ResponseTimeout time.Duration `yaml:"response_timeout" default:"10s" min:"1s" max:"1h"`
}

// TONNPI is a type of number and a numbering plan for each kind of sender. A list of two is meant for all kinds.
type TONNPI struct {
	// TON and NPI of a sender with letters. All kinds together: source_ton_npi: [5, 0]. If wrong: refused, or shown as
	// digits.
	Alphanumeric []int `yaml:"alphanumeric" default:"5,0"`
	// TON and NPI of a sender of at most 8 digits, such as a short code. Some carriers want 0, 1 or 6, 0.
	Short []int `yaml:"short" default:"3,0"`
	// TON and NPI of a sender of more digits.
	International []int `yaml:"international" default:"1,1"`
}

// DataCoding are the values of data_coding for the two encodings.
type DataCoding struct {
	// data_coding of the carrier's alphabet: 0, or 3 if it wants Latin-1 marked as such.
	Default int `yaml:"default" default:"0" min:"0" max:"255"`
	// data_coding of UCS-2.
	UCS2 int `yaml:"ucs2" default:"8" min:"0" max:"255"`
	// data_coding of Latin-1 in parts that customers' programs have cut (SMPP). With 0 (the carrier refuses it) they go
	// out in GSM 7-bit with similar characters.
	Latin1 int `yaml:"latin1" default:"3" min:"0" max:"255"`
}

// Receiver is where the receiver of a transmitter_receiver link binds, if elsewhere.
type Receiver struct {
	// Where the receiver of a transmitter_receiver binds; empty: the link's.
	Address string `yaml:"address"`
	// Its account; empty: the link's.
	SystemID string `yaml:"system_id"`
	// Its password; empty: the link's.
	Password Secret `yaml:"password"`
}

// TLS is true, false, or an object (which means true).
type TLS struct {
	Enabled bool `yaml:"-"`
	// PEM file of the authorities to trust; empty: the system's.
	CA string `yaml:"ca"`
	// PEM file of our certificate.
	Cert string `yaml:"cert"`
	// PEM file of its key.
	Key string `yaml:"key"`
	// Name in the server's certificate; empty: the address's host.
	ServerName string `yaml:"server_name"`
}
