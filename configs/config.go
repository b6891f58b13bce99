// Package configs reads an installation's one configuration file, overrides it from the environment, and reports every
// mistake with its key path and line.
//
// [Config] is the table of keys: a field's tags are its key, default and bounds, its comment is the text. The sample
// file and docs/configuration.md are generated from it.
//
// The file is YAML. Unknown keys are mistakes. ${NAME} in a value is replaced from the environment, ${file:PATH} from
// a file, and $$ by a dollar. An environment variable can override any key, see [Load].
//
// No other package reads the file: cmd/intumwa turns it into each package's Options.
package configs

import (
	_ "embed"
	"time"
)

// Sample is a configuration file with every key, its default and its text.
//
//go:embed intumwa.sample.yaml
var Sample string

// Config is a whole configuration file with the defaults filled in.
//
// Tags: yaml is the key, default the value when the file does not give one (in the syntax of a variable), min and max
// bound a number or a duration (each of a list), max also the characters of a text on one line, a value below usual is
// warned of, oneof lists the permitted words, required refuses an empty value, and example replaces the default in the
// sample file. A key's comment explains it to operators.
type Config struct {
	// The public API: http://<listen>/v1.
	API API `yaml:"api"`
	// /metrics, /healthz, /readyz, profiles.
	Ops Ops `yaml:"ops"`
	// Web pages for customers and administrators.
	Dashboard Dashboard `yaml:"dashboard"`
	// Sends by programs that were written for Kannel: docs/kannel.md.
	Kannel Kannel `yaml:"kannel"`
	// Customers' programs that speak SMPP: docs/smpp.md.
	SMPPServer SMPPServer `yaml:"smpp_server"`
	// Sign-up and password links, notices.
	Mail Mail `yaml:"mail"`
	// To standard error, without secrets, texts or whole numbers.
	Log Log `yaml:"log"`
	// PostgreSQL holds all data.
	Database Database `yaml:"database"`
	// The queue and the rate limit's counters. It may lose its data.
	Redis Redis `yaml:"redis"`
	// Sender name of the test mode. Customers' programs use it: do not change it later.
	TestSender string `yaml:"test_sender" default:"INTUMWATEST"`
	// 32 bytes in base64 or hex that encrypt signing secrets and second factors. Empty: stored in plain. Keep a copy
	// outside the database: without the key they are lost.
	EncryptionKey Secret `yaml:"encryption_key"`
	// Test mode and one-time codes.
	Accounts Accounts `yaml:"accounts"`
	// Credits.
	Billing Billing `yaml:"billing"`
	// Who runs this installation: the head of printed statements.
	Operator Operator `yaml:"operator"`
	// Invoices are reported to the tax office of Burundi (OBR): docs/ebms.md.
	EBMS EBMS `yaml:"ebms"`
	// All messages.
	Messages Messages `yaml:"messages"`
	// Messages from handsets: docs/handsets.md.
	Inbound Inbound `yaml:"inbound"`
	// Calls of customers' endpoints.
	Webhooks Webhooks `yaml:"webhooks"`
	// How long data is kept: docs/retention.md. The ledger has no limit.
	Retention Retention `yaml:"retention"`
	// Mobile operators: docs/carriers.md has the questions to ask and the tests.
	Carriers []Carrier `yaml:"carriers"`

	lines    map[string]int // key path -> line of the file, for Check
	missing  []Problem      // unavailable secrets: a mistake for the roles that need them
	problems Problems       // of Load
	warnings []Problem
}

// API is the public listener.
type API struct {
	// host:port. Put a proxy with TLS in front.
	Listen string `yaml:"listen" default:"127.0.0.1:8080"`
	// Addresses or ranges (10.0.0.0/8) of the proxies of API and dashboard. Their X-Forwarded-For is trusted; their
	// connections are not limited.
	TrustedProxies []string `yaml:"trusted_proxies"`
	// Send requests of a user in 60 s, over all processes. Customers rely on it.
	RateLimitPerMinute int `yaml:"rate_limit_per_minute" default:"500" min:"1" max:"1000000000"`
	// Your text in the reference at /docs: support contact, addresses that webhooks come from.
	DocsNotice string `yaml:"docs_notice"`
}

// Ops is the operators' listener.
type Ops struct {
	// host:port. Never make it public: it has no authentication. Each process of a machine needs its own:
	// INTUMWA_OPS_LISTEN.
	Listen string `yaml:"listen" default:"127.0.0.1:9090"`
	// Addresses or ranges that may read metrics, profiles and traces, besides this machine. Empty: everyone who reaches
	// the listener. /healthz and /readyz answer everyone.
	Networks []string `yaml:"networks"`
}

// Dashboard is the web pages' listener.
type Dashboard struct {
	// host:port. Put a proxy with TLS in front.
	Listen string `yaml:"listen" default:"127.0.0.1:8081"`
	// The dashboard's public address, for links in mails: https://sms.example.com. Cookies need HTTPS, except http:// on
	// this machine.
	PublicURL string `yaml:"public_url"`
	// Address of the API reference: https://api.example.com/docs.
	DocsURL string `yaml:"docs_url"`
	// How customers get credits: price, contact, payment. The statement shows it with the company's number as payment
	// reference.
	CreditsNotice string `yaml:"credits_notice"`
	// Administrators need a second factor. Set false only on a laptop.
	AdminTOTP bool `yaml:"admin_totp" default:"true"`
}

// Kannel is the listener of Kannel's sendsms interface, in processes with the role api.
type Kannel struct {
	// host:port of /cgi-bin/sendsms. Empty: off. Put a proxy with TLS in front, whose log leaves out the query: it has the
	// password.
	Listen string `yaml:"listen"`
}

// SMPPServer is the listener for customers' programs, in processes with the role smpp.
type SMPPServer struct {
	// host:port. Empty: off. Without tls it must be a loopback or private address; with it, 0.0.0.0:2776.
	Listen string `yaml:"listen"`
	// TLS 1.2 or newer. A renewed certificate is read without a restart.
	TLS ServerTLS `yaml:"tls"`
}

// ServerTLS is the certificate of a listener.
type ServerTLS struct {
	// PEM file of the certificate and its chain.
	Cert string `yaml:"cert"`
	// PEM file of its key.
	Key string `yaml:"key"`
}

// Mail is the outgoing mail server.
type Mail struct {
	// smtp://user:password@host:587 (STARTTLS required) or smtps://. On this machine STARTTLS is not required. Empty: no
	// mails, and no sign-up.
	URL Secret `yaml:"url"`
	// Sender: Intumwa <no-reply@example.com>.
	From string `yaml:"from"`
}

// Log configures the log on standard error.
type Log struct {
	// debug adds about five lines for each message.
	Level string `yaml:"level" default:"info" oneof:"debug info warn error"`
	// json for log processors.
	Format string `yaml:"format" default:"text" oneof:"text json"`
}

// Database is PostgreSQL.
type Database struct {
	// postgres://user:password@host:port/name; with a standby host1:port,host2:port. For another machine add
	// sslmode=verify-full. pool_max_conns (at least 4) limits a pool.
	URL Secret `yaml:"url" required:"true" example:"postgres://intumwa:intumwa@127.0.0.1:5432/intumwa"`
	// Commits must wait for a synchronous standby. If not, readiness and an alert report it: docs/high-availability.md.
	RequireStandby bool `yaml:"require_standby"`
	// PostgreSQL must archive its WAL: docs/backup.md. If not, admin status and an alert report it. Set false if another
	// system backs it up without archive_command, or if its data may be lost.
	RequireArchive bool `yaml:"require_archive" default:"true"`
}

// Redis is the queue and the rate limit's counters.
type Redis struct {
	// redis://user:password@host:port/number, rediss:// with TLS, unix:///path. Required without addresses; with them,
	// only its user and password count.
	URL Secret `yaml:"url" example:"redis://127.0.0.1:6379/0"`
	// host:port of each Cluster node or each Sentinel.
	Addresses []string `yaml:"addresses"`
	// Sentinel's master. Empty: the addresses are a Cluster.
	MasterName string `yaml:"master_name"`
	// Password of the Sentinels.
	SentinelPassword Secret `yaml:"sentinel_password"`
	// true, or an object as for a link. rediss:// implies true.
	TLS TLS `yaml:"tls" default:"false"`
	// Beginning of every key. Each installation on a server needs its own.
	Prefix string `yaml:"prefix" default:"intumwa"`
}

// Accounts bounds what an account may do in test mode, rule api 4.4.
type Accounts struct {
	// Segments of test messages that an account may have sent or pending.
	TestQuota int `yaml:"test_quota" default:"5" min:"0" max:"1000000"`
	// One-time codes in 24 hours for all companies that are not approved or have no credits, together. You pay for them.
	// Of these, 20 to one client's network and 20 to one block of 10,000 numbers.
	TestCodesADay int `yaml:"test_codes_a_day" default:"500" min:"1" max:"1000000"`
	// Messages with codes of /v1/verifications that a company may send in an hour.
	VerificationsAnHour int `yaml:"verifications_an_hour" default:"10000" min:"1" max:"10000000"`
	// Key of one-time codes and for hashes of SMPP passwords: at least 32 characters, the same in every process. A change
	// ends all SMPP passwords. Empty: a copy of the database reveals both.
	OTPKey Secret `yaml:"otp_key"`
}

// Billing configures when credits are refunded.
type Billing struct {
	// Which failed messages are refunded: unsubmitted (expired or opted out before a carrier accepted any segment), failed
	// (all), never. Cancelled ones always are.
	Refund string `yaml:"refund" default:"unsubmitted" oneof:"unsubmitted failed never"`
}

// Operator is the company that runs the installation, as its printed statements name it. All keys are optional.
type Operator struct {
	// Its name. Empty: Intumwa.
	Name string `yaml:"name" max:"100"`
	// Tax number (NIF).
	NIF string `yaml:"nif" max:"40"`
	// Number in the trade register (RC).
	TradeRegister string `yaml:"trade_register" max:"60"`
	// Postal address, on one line.
	Address string `yaml:"address" max:"300"`
	// Telephone for questions.
	Phone string `yaml:"phone" max:"40"`
	// Mail address for questions; it gets a mail about each order.
	Email string `yaml:"email" max:"254"`

	// Where customers pay: a line for each bank account, as a proforma prints it:
	// ["BANCOBU 1234567-89, Nyota SURL"].
	BankAccounts []string `yaml:"bank_accounts"`
	// The same for mobile money: ["Lumicash, merchant 12345"].
	MobileMoney []string `yaml:"mobile_money"`
	// Taxes on credits: [{name: TVA, rate: 18%, from: 2026-01-01}, {name: Taxe SMS, per_sms: 5, from: 2026-01-01}]. Ask
	// the tax office which you owe.
	Taxes []Tax `yaml:"taxes" example:"[]"`
	// What an invoice says of it beside name, nif, trade_register, address and phone, which are then required. {}: paid
	// orders get receipts without an invoice's number. Required: legal_form, activity_sector, fiscal_center (DGC, DMC or
	// DPMC), commune, quarter. Optional: province, avenue, street, house, postal_number; as true or false
	// natural_person, vat_taxpayer, ct_taxpayer, tl_taxpayer.
	Invoices map[string]string `yaml:"invoices"`
}

// Tax is a tax on credits from a day on, until the next one of its name. Rate or PerSMS is given; 0 ends the tax.
type Tax struct {
	// Its name on proformas and invoices.
	Name string `yaml:"name" required:"true" max:"50"`
	// Of the price: 18% or 0.18.
	Rate string `yaml:"rate" max:"12"`
	// Francs for each credit, instead of a rate: 5.
	PerSMS string `yaml:"per_sms" max:"12"`
	// Its first day: 2026-01-01. 0 from a day on ends a tax.
	From string `yaml:"from" required:"true" max:"10"`
	// Names of taxes that a rate is also of, beside the price; they have no such list themselves.
	On []string `yaml:"on"`
	// What the tax office's system calls it: vat, ct, tl, ott or tsce.
	EBMS string `yaml:"ebms" max:"4"`
}

// EBMS is the tax office's system that receives invoices. With the URL, all other keys but CA are required.
type EBMS struct {
	// https://host:port, as the OBR gave it, without /ebms_api. Empty: off. http:// only for a simulator on this
	// machine.
	URL string `yaml:"url" max:"200"`
	// User of the login.
	Username string `yaml:"username" max:"30"`
	// File with its password, in processes with the roles webhooks and dashboard.
	PasswordFile string `yaml:"password_file"`
	// The system's id from the OBR, mostly the username. It is part of the identifier on invoices.
	SystemID string `yaml:"system_id" max:"30"`
	// PEM file of authorities that may sign its certificate, besides those that the machine trusts.
	CA string `yaml:"ca"`
}

// Messages bounds a message's life.
type Messages struct {
	// How long gateway and carrier try to deliver a message.
	Validity time.Duration `yaml:"validity" default:"24h" min:"1s" max:"720h" usual:"1m"`
	// Maximum segments of one message; 255 is the protocol's limit.
	MaxSegments int `yaml:"max_segments" default:"255" min:"1" max:"255"`
	// Hours in Burundi time when batches wait, such as 21:00-06:00. Single messages are still sent. A company may have its
	// own.
	QuietHours string `yaml:"quiet_hours" default:"none"`
	// How long messages from handsets are kept.
	InboundRetention time.Duration `yaml:"inbound_retention" default:"720h" min:"1m" max:"876000h" usual:"24h"`
}

// Inbound configures the handling of MOs.
type Inbound struct {
	// A message that begins with one of these words opts the handset out, whatever follows. Case and accents do not
	// matter. Empty: none.
	StopWords []string `yaml:"stop_words" default:"STOP,ARRET,HAGARIKA"`
	// Words that opt it in again.
	StartWords []string `yaml:"start_words" default:"START,REPRENDRE,TANGURA"`
	// Acknowledgement of an opt-out, at your cost, at most four a day to one handset; {{start}} becomes the first start
	// word. Empty: none.
	StopReply string `yaml:"stop_reply"`
	// Acknowledgement of an opt-in.
	StartReply string `yaml:"start_reply"`
}

// Webhooks configures how customers' endpoints are called.
type Webhooks struct {
	// Maximum time of a whole call.
	Timeout time.Duration `yaml:"timeout" default:"10s" min:"100ms" max:"1m" usual:"1s"`
	// Pauses between attempts. After the last attempt the delivery has failed.
	RetryDelays []time.Duration `yaml:"retry_delays" default:"10s,30s,1m,5m,15m" min:"1ms" max:"24h"`
	// Allows plain HTTP and private addresses. Development only: customers could reach internal machines.
	AllowPrivate bool `yaml:"allow_private"`
}

// Retention configures how long old data is kept.
type Retention struct {
	// Final messages, batches, segments; 0s: no limit. At least a day more than messages.validity and the longest
	// receipt_timeout together, and at least idempotency_keys.
	Messages time.Duration `yaml:"messages" min:"0s" max:"876000h"`
	// Texts, at least 24h; 0s: as long as the messages.
	Bodies time.Duration `yaml:"bodies" min:"0s" max:"876000h"`
	// Recipients, then obscured as +2577XXXXX12. At least receipts and deliveries; 0s: as long as the messages.
	Numbers time.Duration `yaml:"numbers" min:"0s" max:"876000h"`
	// Receipts that match no message or change nothing.
	Receipts time.Duration `yaml:"receipts" default:"168h" min:"1m" max:"876000h" usual:"24h"`
	// Webhook deliveries, at least 24h.
	Deliveries time.Duration `yaml:"deliveries" default:"720h" min:"24h" max:"876000h"`
	// Idempotency keys, at least 24h. Customers rely on it.
	IdempotencyKeys time.Duration `yaml:"idempotency_keys" default:"24h" min:"24h" max:"876000h"`
}
