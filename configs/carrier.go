package configs

import "time"

// Carrier is one mobile operator: the numbers it serves and its links.
type Carrier struct {
	Name             string            `yaml:"name" required:"true" example:"lumitel" text:"Name in metrics, logs and variables. Do not rename a carrier that has waiting messages: they are stored under its name."`
	Prefixes         []string          `yaml:"prefixes" example:"61,62,68,69" text:"First digits of national numbers, or all 8. The longest match among all carriers wins."`
	Default          bool              `yaml:"default" text:"This carrier takes numbers that match no prefix. At most one carrier; without one, such numbers get 400."`
	Confirm          string            `yaml:"confirm" default:"receipt" oneof:"receipt submit" text:"What makes a message sent: receipt, or submit (the submit_sm_resp) for a carrier without receipts."`
	OnReceiptTimeout string            `yaml:"on_receipt_timeout" default:"failed" oneof:"failed sent" text:"Status of a message whose receipt never came."`
	ReceiptTimeout   time.Duration     `yaml:"receipt_timeout" default:"1h" min:"1" text:"How long to wait for a receipt after the validity."`
	MessageIDFormat  string            `yaml:"message_id_format" default:"auto" oneof:"auto same hex_to_decimal decimal_to_hex" text:"How ids in receipts relate to those in submit_sm_resp. auto tries all formats for receipts that name their handset. Set the format if they do not, or if ids count from 1. If wrong: no receipt matches."`
	ReceiptStates    map[string]string `yaml:"receipt_states" oneof:"sent failed none" text:"Changes the meaning of a receipt's stat: sent, failed or none, e.g. {ACCEPTD: none} if that is \"in our queue\"."`
	Concat           string            `yaml:"concat" default:"udh8" oneof:"udh8 udh16 sar payload" text:"How long messages are split; udh16 costs one character per segment. If wrong: handsets show segments separately."`
	Alphabet         string            `yaml:"alphabet" default:"gsm7" oneof:"gsm7 latin1 ascii" text:"The carrier's data_coding 0, in both directions. If wrong: @, $, _ and accents change."`
	ValidityPeriod   string            `yaml:"validity_period" default:"relative" oneof:"relative absolute none" text:"Form of the validity in submit_sm. Some SMSCs refuse relative ones (ESME_RINVEXPIRY)."`
	SourceTONNPI     []int             `yaml:"source_ton_npi" default:"5,0" text:"TON and NPI of the sender; 5 is alphanumeric. If wrong: refused, or shown as digits."`
	DestTONNPI       []int             `yaml:"dest_ton_npi" default:"1,1" text:"TON and NPI of the recipient: international, E.164."`
	ServiceType      string            `yaml:"service_type" text:"At most 5 bytes; some carriers bill or route by it."`
	TLVs             map[string]string `yaml:"tlvs" text:"Optional parameters of every submit_sm, as text or hex: {0x1401: abc, 0x1402: \"hex:00FF\"}."`
	ErrorClasses     map[string]string `yaml:"error_classes" oneof:"throttled temporary permanent unroutable configuration" text:"Changes the class of a command_status: throttled, temporary, permanent, unroutable, configuration, e.g. {0x45: permanent}."`
	UserReference    bool              `yaml:"user_message_reference" default:"true" text:"Sent with every segment. A receipt that echoes it settles a segment whose submit_sm_resp was lost. Set false if the carrier refuses it (ESME_ROPTPARNOTALLWD)."`
	OnAmbiguous      string            `yaml:"on_ambiguous" default:"resend" oneof:"resend hold fail" text:"What to do with a segment whose submit_sm_resp was lost: resend (may arrive twice), hold (wait for its receipt until the message expires), fail."`
	UnknownHold      time.Duration     `yaml:"unknown_hold" default:"5m" min:"1" text:"How long to wait for a submit_sm_resp in an open session before on_ambiguous; longer than enquire_link plus its 10s."`
	Failover         []string          `yaml:"failover" text:"Carriers to try, in this order, when every link of this one has been down for 10s. They must reach the same numbers."`
	SecondCarrier    string            `yaml:"second_carrier" text:"Carrier to try once for a message that this one refuses as unroutable, or reports as UNDELIV within a minute."`
	Links            []Link            `yaml:"links" required:"true" text:"The binds at its SMSCs; at least one. An account that may bind several times has a link for each, with its part of window and tps."`
}

// Link is one bind at a carrier's SMSC.
type Link struct {
	Name            string        `yaml:"name" required:"true" example:"lumitel-1" text:"Name in metrics, logs and variables; unique among all carriers."`
	Address         string        `yaml:"address" required:"true" example:"127.0.0.1:2775" text:"host:port of the SMSC."`
	TLS             TLS           `yaml:"tls" default:"false" text:"true, false, or files in PEM: {ca: authorities to trust, cert: ours, key: its key, server_name: the name in the SMSC's certificate}. TLS 1.2 at least."`
	Bind            string        `yaml:"bind" default:"transceiver" oneof:"transceiver transmitter_receiver" text:"transmitter_receiver opens two sessions, for SMSCs without transceiver."`
	SystemID        string        `yaml:"system_id" required:"true" example:"demo" text:"At most 15 bytes."`
	Password        Secret        `yaml:"password" example:"demo" text:"At most 8 bytes. From a file it is read at every reload."`
	SystemType      string        `yaml:"system_type" text:"At most 12 bytes; few carriers check it."`
	Window          int           `yaml:"window" default:"100" min:"1" max:"1000" text:"Maximum of unanswered submit_sm. The rate is at most window / latency. A lost session can duplicate as many."`
	TPS             int           `yaml:"tps" default:"100" min:"0" text:"submit_sm per second, evenly spread: the contract's rate. 0: no limit."`
	EnquireLink     time.Duration `yaml:"enquire_link" default:"30s" min:"1s" text:"Silence before an enquire_link is sent. As much again (at most 10s) without an answer ends the session. Keep it below the idle timeouts of firewall and SMSC."`
	ResponseTimeout time.Duration `yaml:"response_timeout" default:"10s" min:"1s" text:"After this time an unanswered submit_sm raises an alert. It is not sent again for that."`
}

// TLS is true, false, or an object (which means true).
type TLS struct {
	Enabled    bool   `yaml:"-"`
	CA         string `yaml:"ca" text:"PEM file of the authorities to trust; empty: the system's."`
	Cert       string `yaml:"cert" text:"PEM file of our certificate."`
	Key        string `yaml:"key" text:"PEM file of its key."`
	ServerName string `yaml:"server_name" text:"Name in the server's certificate; empty: the address's host."`
}
