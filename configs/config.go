// Package configs reads an installation's one configuration file, overrides it from the environment, and reports every
// mistake with its key path and line.
//
// [Config] is the table of keys: a field's tags are its key, default, bounds and text. The reader, the sample file and
// docs/configuration.md are generated from it.
//
// The file is YAML. Unknown keys are mistakes. ${NAME} in a value is replaced from the environment, ${file:PATH} from
// a file, and $$ by a dollar. An environment variable can override any key, see [Load].
//
// No other package reads the file: cmd/intumwa turns it into each package's Options.
package configs

import "time"

// Config is a whole configuration file with the defaults filled in.
//
// Tags: yaml is the key, default the value when the file does not give one (in the syntax of a variable), min and max
// bound a number or a duration (each of a list), max also the characters of a text on one line, a value below usual is
// warned of, oneof lists the permitted words, required refuses an empty value, text explains the key, and example
// replaces the default in the sample file.
type Config struct {
	API           API        `yaml:"api" text:"The public API: http://<listen>/v1."`
	Ops           Ops        `yaml:"ops" text:"/metrics, /healthz, /readyz, profiles."`
	Dashboard     Dashboard  `yaml:"dashboard" text:"Web pages for customers and administrators."`
	Kannel        Kannel     `yaml:"kannel" text:"Sends by programs that were written for Kannel: docs/kannel.md."`
	SMPPServer    SMPPServer `yaml:"smpp_server" text:"Customers' programs that speak SMPP: docs/smpp.md."`
	Mail          Mail       `yaml:"mail" text:"Sign-up and password links, notices."`
	Log           Log        `yaml:"log" text:"To standard error, without secrets, texts or whole numbers."`
	Database      Database   `yaml:"database" text:"PostgreSQL holds all data."`
	Redis         Redis      `yaml:"redis" text:"The queue and the rate limit's counters. It may lose its data."`
	TestSender    string     `yaml:"test_sender" default:"INTUMWATEST" text:"Sender name of the test mode. Customers' programs use it: do not change it later."`
	EncryptionKey Secret     `yaml:"encryption_key" text:"32 bytes in base64 or hex that encrypt signing secrets and second factors. Empty: stored in plain. Keep a copy outside the database: without the key they are lost."`
	Accounts      Accounts   `yaml:"accounts" text:"Test mode and one-time codes."`
	Billing       Billing    `yaml:"billing" text:"Credits."`
	Operator      Operator   `yaml:"operator" text:"Who runs this installation: the head of printed statements."`
	EBMS          EBMS       `yaml:"ebms" text:"Invoices are reported to the tax office of Burundi (OBR): docs/ebms.md."`
	Messages      Messages   `yaml:"messages" text:"All messages."`
	Inbound       Inbound    `yaml:"inbound" text:"Messages from handsets: docs/handsets.md."`
	Webhooks      Webhooks   `yaml:"webhooks" text:"Calls of customers' endpoints."`
	Retention     Retention  `yaml:"retention" text:"How long data is kept: docs/retention.md. The ledger has no limit."`
	Carriers      []Carrier  `yaml:"carriers" text:"Mobile operators: docs/carriers.md has the questions to ask and the tests."`

	lines    map[string]int // key path -> line of the file, for Check
	missing  []Problem      // unavailable secrets: a mistake for the roles that need them
	problems Problems       // of Load
	warnings []Problem
}

// API is the public listener.
type API struct {
	Listen             string   `yaml:"listen" default:"127.0.0.1:8080" text:"host:port. Put a proxy with TLS in front."`
	TrustedProxies     []string `yaml:"trusted_proxies" text:"Addresses or ranges (10.0.0.0/8) of the proxies of API and dashboard. Their X-Forwarded-For is trusted; their connections are not limited."`
	RateLimitPerMinute int      `yaml:"rate_limit_per_minute" default:"500" min:"1" max:"1000000000" text:"Send requests of a user in 60 s, over all processes. Customers rely on it."`
	DocsNotice         string   `yaml:"docs_notice" text:"Your text in the reference at /docs: support contact, addresses that webhooks come from."`
}

// Ops is the operators' listener.
type Ops struct {
	Listen   string   `yaml:"listen" default:"127.0.0.1:9090" text:"host:port. Never make it public: it has no authentication. Each process of a machine needs its own: INTUMWA_OPS_LISTEN."`
	Networks []string `yaml:"networks" text:"Addresses or ranges that may read metrics, profiles and traces, besides this machine. Empty: everyone who reaches the listener. /healthz and /readyz answer everyone."`
}

// Dashboard is the web pages' listener.
type Dashboard struct {
	Listen        string `yaml:"listen" default:"127.0.0.1:8081" text:"host:port. Put a proxy with TLS in front."`
	PublicURL     string `yaml:"public_url" text:"The dashboard's public address, for links in mails: https://sms.example.com. Cookies need HTTPS, except http:// on this machine."`
	DocsURL       string `yaml:"docs_url" text:"Address of the API reference: https://api.example.com/docs."`
	CreditsNotice string `yaml:"credits_notice" text:"How customers get credits: price, contact, payment. The statement shows it with the company's number as payment reference."`
	AdminTOTP     bool   `yaml:"admin_totp" default:"true" text:"Administrators need a second factor. Set false only on a laptop."`
}

// Kannel is the listener of Kannel's sendsms interface, in processes with the role api.
type Kannel struct {
	Listen string `yaml:"listen" text:"host:port of /cgi-bin/sendsms. Empty: off. Put a proxy with TLS in front, whose log leaves out the query: it has the password."`
}

// SMPPServer is the listener for customers' programs, in processes with the role smpp.
type SMPPServer struct {
	Listen string    `yaml:"listen" text:"host:port. Empty: off. Without tls it must be a loopback or private address; with it, 0.0.0.0:2776."`
	TLS    ServerTLS `yaml:"tls" text:"TLS 1.2 or newer. A renewed certificate is read without a restart."`
}

// ServerTLS is the certificate of a listener.
type ServerTLS struct {
	Cert string `yaml:"cert" text:"PEM file of the certificate and its chain."`
	Key  string `yaml:"key" text:"PEM file of its key."`
}

// Mail is the outgoing mail server.
type Mail struct {
	URL  Secret `yaml:"url" text:"smtp://user:password@host:587 (STARTTLS required) or smtps://. On this machine STARTTLS is not required. Empty: no mails, and no sign-up."`
	From string `yaml:"from" text:"Sender: Intumwa <no-reply@example.com>."`
}

// Log configures the log on standard error.
type Log struct {
	Level  string `yaml:"level" default:"info" oneof:"debug info warn error" text:"debug adds about five lines for each message."`
	Format string `yaml:"format" default:"text" oneof:"text json" text:"json for log processors."`
}

// Database is PostgreSQL.
type Database struct {
	URL            Secret `yaml:"url" required:"true" example:"postgres://intumwa:intumwa@127.0.0.1:5432/intumwa" text:"postgres://user:password@host:port/name; with a standby host1:port,host2:port. For another machine add sslmode=verify-full. pool_max_conns (at least 4) limits a pool."`
	RequireStandby bool   `yaml:"require_standby" text:"Commits must wait for a synchronous standby. If not, readiness and an alert report it: docs/high-availability.md."`
	RequireArchive bool   `yaml:"require_archive" default:"true" text:"PostgreSQL must archive its WAL: docs/backup.md. If not, admin status and an alert report it. Set false if another system backs it up without archive_command, or if its data may be lost."`
}

// Redis is the queue and the rate limit's counters.
type Redis struct {
	URL              Secret   `yaml:"url" example:"redis://127.0.0.1:6379/0" text:"redis://user:password@host:port/number, rediss:// with TLS, unix:///path. Required without addresses; with them, only its user and password count."`
	Addresses        []string `yaml:"addresses" text:"host:port of each Cluster node or each Sentinel."`
	MasterName       string   `yaml:"master_name" text:"Sentinel's master. Empty: the addresses are a Cluster."`
	SentinelPassword Secret   `yaml:"sentinel_password" text:"Password of the Sentinels."`
	TLS              TLS      `yaml:"tls" default:"false" text:"true, or an object as for a link. rediss:// implies true."`
	Prefix           string   `yaml:"prefix" default:"intumwa" text:"Beginning of every key. Each installation on a server needs its own."`
}

// Accounts bounds what an account may do in test mode, rule api 4.4.
type Accounts struct {
	TestQuota              int    `yaml:"test_quota" default:"5" min:"0" max:"1000000" text:"Segments of test messages that an account may have sent or pending."`
	TestNumberReplacements int    `yaml:"test_number_replacements" default:"3" min:"0" max:"1000000" text:"How often a verified test number may be replaced."`
	TestCodesADay          int    `yaml:"test_codes_a_day" default:"500" min:"1" max:"1000000" text:"One-time codes in 24 hours for all companies that are not approved or have no credits, together. You pay for them. Of these, 20 to one client's network and 20 to one block of 10,000 numbers."`
	VerificationsAnHour    int    `yaml:"verifications_an_hour" default:"10000" min:"1" max:"10000000" text:"Messages with codes of /v1/verifications that a company may send in an hour."`
	OTPKey                 Secret `yaml:"otp_key" text:"Key of one-time codes and for hashes of SMPP passwords: at least 32 characters, the same in every process. A change ends all SMPP passwords. Empty: a copy of the database reveals both."`
}

// Billing configures when credits are refunded.
type Billing struct {
	Refund string `yaml:"refund" default:"unsubmitted" oneof:"unsubmitted failed never" text:"Which failed messages are refunded: unsubmitted (expired or opted out before a carrier accepted any segment), failed (all), never. Cancelled ones always are."`
}

// Operator is the company that runs the installation, as its printed statements name it. All keys are optional.
type Operator struct {
	Name          string `yaml:"name" max:"100" text:"Its name. Empty: Intumwa."`
	NIF           string `yaml:"nif" max:"40" text:"Tax number (NIF)."`
	TradeRegister string `yaml:"trade_register" max:"60" text:"Number in the trade register (RC)."`
	Address       string `yaml:"address" max:"300" text:"Postal address, on one line."`
	Phone         string `yaml:"phone" max:"40" text:"Telephone for questions."`
	Email         string `yaml:"email" max:"254" text:"Mail address for questions; it gets a mail about each order."`

	BankAccounts []string `yaml:"bank_accounts" text:"Where customers pay: a line for each bank account, as a proforma prints it: [\"BANCOBU 1234567-89, Nyota SURL\"]."`
	MobileMoney  []string `yaml:"mobile_money" text:"The same for mobile money: [\"Lumicash, merchant 12345\"]."`
	Taxes        []Tax    `yaml:"taxes" example:"[]" text:"Taxes on credits: [{name: TVA, rate: 18%, from: 2026-01-01}, {name: Taxe SMS, per_sms: 5, from: 2026-01-01}]. Ask the tax office which you owe."`

	Invoices map[string]string `yaml:"invoices" text:"What an invoice says of it beside name, nif, trade_register, address and phone, which are then required. {}: paid orders get receipts without an invoice's number. Required: legal_form, activity_sector, fiscal_center (DGC, DMC or DPMC), commune, quarter. Optional: province, avenue, street, house, postal_number; as true or false natural_person, vat_taxpayer, ct_taxpayer, tl_taxpayer."`
}

// Tax is a tax on credits from a day on, until the next one of its name. Rate or PerSMS is given; 0 ends the tax.
type Tax struct {
	Name   string   `yaml:"name" required:"true" max:"50" text:"Its name on proformas and invoices."`
	Rate   string   `yaml:"rate" max:"12" text:"Of the price: 18% or 0.18."`
	PerSMS string   `yaml:"per_sms" max:"12" text:"Francs for each credit, instead of a rate: 5."`
	From   string   `yaml:"from" required:"true" max:"10" text:"Its first day: 2026-01-01. 0 from a day on ends a tax."`
	On     []string `yaml:"on" text:"Names of taxes that a rate is also of, beside the price; they have no such list themselves."`
	EBMS   string   `yaml:"ebms" max:"4" text:"What the tax office's system calls it: vat, ct, tl, ott or tsce."`
}

// EBMS is the tax office's system that receives invoices. With the URL, all other keys but CA are required.
type EBMS struct {
	URL          string `yaml:"url" max:"200" text:"https://host:port, as the OBR gave it, without /ebms_api. Empty: off. http:// only for a simulator on this machine."`
	Username     string `yaml:"username" max:"30" text:"User of the login."`
	PasswordFile string `yaml:"password_file" text:"File with its password, in processes with the roles webhooks and dashboard."`
	SystemID     string `yaml:"system_id" max:"30" text:"The system's id from the OBR, mostly the username. It is part of the identifier on invoices."`
	CA           string `yaml:"ca" text:"PEM file of authorities that may sign its certificate, besides those that the machine trusts."`
}

// Messages bounds a message's life.
type Messages struct {
	Validity         time.Duration `yaml:"validity" default:"24h" min:"1s" max:"720h" usual:"1m" text:"How long gateway and carrier try to deliver a message."`
	MaxSegments      int           `yaml:"max_segments" default:"255" min:"1" max:"255" text:"Maximum segments of one message; 255 is the protocol's limit."`
	QuietHours       string        `yaml:"quiet_hours" default:"none" text:"Hours in Burundi time when batches wait, such as 21:00-06:00. Single messages are still sent. A company may have its own."`
	InboundRetention time.Duration `yaml:"inbound_retention" default:"720h" min:"1m" max:"876000h" usual:"24h" text:"How long messages from handsets are kept."`
}

// Inbound configures the handling of MOs.
type Inbound struct {
	StopWords  []string `yaml:"stop_words" default:"STOP,ARRET,HAGARIKA" text:"A message that begins with one of these words opts the handset out, whatever follows. Case and accents do not matter. Empty: none."`
	StartWords []string `yaml:"start_words" default:"START,REPRENDRE,TANGURA" text:"Words that opt it in again."`
	StopReply  string   `yaml:"stop_reply" text:"Acknowledgement of an opt-out, at your cost, at most four a day to one handset; {{start}} becomes the first start word. Empty: none."`
	StartReply string   `yaml:"start_reply" text:"Acknowledgement of an opt-in."`
}

// Webhooks configures how customers' endpoints are called.
type Webhooks struct {
	Timeout      time.Duration   `yaml:"timeout" default:"10s" min:"100ms" max:"1m" usual:"1s" text:"Maximum time of a whole call."`
	RetryDelays  []time.Duration `yaml:"retry_delays" default:"10s,30s,1m,5m,15m" min:"1ms" max:"24h" text:"Pauses between attempts. After the last attempt the delivery has failed."`
	AllowPrivate bool            `yaml:"allow_private" text:"Allows plain HTTP and private addresses. Development only: customers could reach internal machines."`
}

// Retention configures how long old data is kept.
type Retention struct {
	Messages        time.Duration `yaml:"messages" min:"0s" max:"876000h" text:"Final messages, batches, segments; 0s: no limit. At least a day more than messages.validity and the longest receipt_timeout together, and at least idempotency_keys."`
	Bodies          time.Duration `yaml:"bodies" min:"0s" max:"876000h" text:"Texts, at least 24h; 0s: as long as the messages."`
	Numbers         time.Duration `yaml:"numbers" min:"0s" max:"876000h" text:"Recipients, then obscured as +2577XXXXX12. At least receipts and deliveries; 0s: as long as the messages."`
	Receipts        time.Duration `yaml:"receipts" default:"168h" min:"1m" max:"876000h" usual:"24h" text:"Receipts that match no message or change nothing."`
	Deliveries      time.Duration `yaml:"deliveries" default:"720h" min:"24h" max:"876000h" text:"Webhook deliveries, at least 24h."`
	IdempotencyKeys time.Duration `yaml:"idempotency_keys" default:"24h" min:"24h" max:"876000h" text:"Idempotency keys, at least 24h. Customers rely on it."`
}
