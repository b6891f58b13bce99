// Package configs reads the one configuration file of an installation, lays the environment over it
// and says every mistake in it with the mistake's key path and line.
//
// The file is YAML. Unknown keys are mistakes; ${NAME} in a value is replaced from the environment and
// $$ is a literal dollar; anchors, aliases and merge keys work. Every key can be overridden by the
// environment variable of its path, see [Load].
//
// Nothing below this floor reads the file: cmd/intumwa turns it into each room's Options.
//
// The YAML is goccy/go-yaml's, its decoding is not: with Strict it tells one mistake at a time, words and durations without
// their line, refuses a key that overrides a merged one, reads a password 0123 as 83, and quotes the file in its errors.
package configs

import (
	"log/slog"
	"time"

	"intumwa/dispatcher"
	"intumwa/inbound/handsets"
)

// Config is a whole configuration file with the defaults filled in.
//
// The tags are the key, the value of a file that does not give it, as a variable would have it, and what [Config.Check]
// demands: min and max bound a number, a duration, or the length of a list.
type Config struct {
	API        API       `yaml:"api"`
	Ops        Ops       `yaml:"ops"`
	Dashboard  Dashboard `yaml:"dashboard"`
	Mail       Mail      `yaml:"mail"`
	Log        Log       `yaml:"log"`
	Database   Database  `yaml:"database"`
	Redis      Redis     `yaml:"redis"`
	TestSender string    `yaml:"test_sender" default:"INTUMWATEST"` // sender name of the test mode, rule api 4.4
	Accounts   Accounts  `yaml:"accounts"`
	Billing    Billing   `yaml:"billing"`
	Limits     Limits    `yaml:"limits"`
	Messages   Messages  `yaml:"messages"`
	Inbound    Inbound   `yaml:"inbound"`
	Webhooks   Webhooks  `yaml:"webhooks"`
	Retention  Retention `yaml:"retention"`
	Carriers   []Carrier `yaml:"carriers" min:"1"`

	lines    map[string]int  // key path -> line of the file, for Check
	foreign  map[string]bool // key paths whose values came from the environment, where secrets live
	missing  []Problem       // secrets that the file takes from variables which are not set
	problems Problems        // of Load
	warnings []Problem
}

// API is the public listener.
type API struct {
	Listen             string   `yaml:"listen" default:"127.0.0.1:8080"`
	TrustedProxies     []string `yaml:"trusted_proxies"` // addresses or CIDR ranges whose X-Forwarded-For counts
	RateLimitPerMinute int      `yaml:"rate_limit_per_minute" default:"500" min:"1"`
	MaxBody            int64    `yaml:"max_body" default:"16777216" min:"1024"`    // octets; above it 413
	BodyMemory         int64    `yaml:"body_memory" default:"67108864" min:"1024"` // octets of bodies and large answers in memory at once
	LookupsPerUser     int      `yaml:"lookups_per_user" default:"2" min:"1"`      // one user's look-ups at the database at once
	MaxConnections     int      `yaml:"max_connections" default:"10000" min:"0"`   // open client connections, 0 = no limit

	MaxConnectionsPerAddress int `yaml:"max_connections_per_address" default:"1000" min:"0"` // of them, of one address that is no trusted proxy; 0 = no limit

	ReadHeaderTimeout time.Duration `yaml:"read_header_timeout" default:"5s" min:"1"` // of a request's header
	ReadTimeout       time.Duration `yaml:"read_timeout" default:"30s" min:"1"`       // of a whole request
	WriteTimeout      time.Duration `yaml:"write_timeout" default:"30s" min:"1"`      // of an answer
	IdleTimeout       time.Duration `yaml:"idle_timeout" default:"1m" min:"1"`        // of a kept-alive connection
}

// Ops is the operators' listener: /metrics, /healthz, /readyz.
type Ops struct {
	Listen string            `yaml:"listen" default:"127.0.0.1:9090"`
	Roles  map[string]string `yaml:"roles"` // role -> host:port of a process that has this role alone
}

// ListenFor is where a process with these roles has its operators' listener.
func (o *Ops) ListenFor(roles ...string) string {
	if len(roles) == 1 && o.Roles[roles[0]] != "" {
		return o.Roles[roles[0]]
	}
	return o.Listen
}

// Dashboard is the web face's listener.
type Dashboard struct {
	Listen         string        `yaml:"listen" default:"127.0.0.1:8081"`
	TrustedProxies []string      `yaml:"trusted_proxies"`
	PublicURL      string        `yaml:"public_url"` // where people reach it; empty: http:// and listen
	DocsURL        string        `yaml:"docs_url"`   // of the API's reference; empty: no link to it
	SecureCookies  bool          `yaml:"secure_cookies" default:"true"`
	AdminTOTP      bool          `yaml:"admin_totp" default:"true"`          // administrators need a second factor
	SessionIdle    time.Duration `yaml:"session_idle" default:"12h" min:"1"` // a session unused for so long ends
}

// Mail is the server by which people get mails.
type Mail struct {
	Server   Address `yaml:"server"` // host:port; empty: mails are not sent
	From     string  `yaml:"from"`
	Username string  `yaml:"username"`
	Password Secret  `yaml:"password"`

	PasswordFile SecretFile `yaml:"password_file"`

	TLS Word[MailTLS] `yaml:"tls" default:"starttls"`
}

// Log is what goes to standard error.
type Log struct {
	Level  Word[slog.Level] `yaml:"level" default:"info"`
	Format Word[LogFormat]  `yaml:"format" default:"text"`
}

// Database is Postgres, the truth. It is at [Database.Whole].
type Database struct {
	URL          URL        `yaml:"url"`
	Host         Host       `yaml:"host"` // this and the next six: parts that win over the URL's, or make one up
	Port         int        `yaml:"port" min:"0" max:"65535"`
	Name         string     `yaml:"name"`
	User         string     `yaml:"user"`
	Password     Secret     `yaml:"password"`
	PasswordFile SecretFile `yaml:"password_file"`
	SSLMode      string     `yaml:"sslmode"`

	MaxConnections int `yaml:"max_connections" min:"0" max:"10000"` // per process and pool; 0 = four a CPU, at least 8

	RequireStandby bool `yaml:"require_standby"` // each commit must be on a standby: else it is said, and an alert

	LookupConnections int           `yaml:"lookup_connections" min:"0" max:"10000"` // of the pool of look-ups; 0 = one a CPU, at least 2
	LookupTimeout     time.Duration `yaml:"lookup_timeout" default:"2s" min:"1"`    // of a look-up's statement
}

// Redis is the queue and the rate limiter's counters. Either a single one, at [Redis.Whole], or Addresses.
type Redis struct {
	URL          URL        `yaml:"url"`
	Host         Host       `yaml:"host"` // this and the next two: parts that win over the URL's, or make one up
	Port         int        `yaml:"port" min:"0" max:"65535"`
	Database     int        `yaml:"database" min:"0"`
	Addresses    []Address  `yaml:"addresses"`   // host:port of Cluster or Sentinel nodes
	MasterName   string     `yaml:"master_name"` // with Addresses: Sentinel's master; empty = Cluster
	Username     string     `yaml:"username"`
	Password     Secret     `yaml:"password"`
	PasswordFile SecretFile `yaml:"password_file"`

	SentinelUsername     string     `yaml:"sentinel_username"` // of the Sentinels themselves
	SentinelPassword     Secret     `yaml:"sentinel_password"`
	SentinelPasswordFile SecretFile `yaml:"sentinel_password_file"`

	TLS    TLS    `yaml:"tls"`                      // with either; rediss:// in URL is the same as true
	Prefix string `yaml:"prefix" default:"intumwa"` // of every key
}

// Accounts bounds what an account may do in test mode, rule api 4.4.
type Accounts struct {
	TestQuota              int    `yaml:"test_quota" default:"5" min:"0"`               // segments
	TestNumberReplacements int    `yaml:"test_number_replacements" default:"3" min:"0"` // of a verified number
	OTPKey                 Secret `yaml:"otp_key"`                                      // key under which one-time codes are stored hashed
	EncryptionKey          Secret `yaml:"encryption_key"`                               // encrypts second factors' secrets at rest

	OTPKeyFile        SecretFile `yaml:"otp_key_file"`
	EncryptionKeyFile SecretFile `yaml:"encryption_key_file"`
}

// Billing says when credits come back.
type Billing struct {
	Refund Word[dispatcher.Refund] `yaml:"refund" default:"unsubmitted"`
}

// Limits bounds what companies that have no limits of their own may send; 0 bounds nothing. A day is one of Burundi.
type Limits struct {
	RepeatInterval time.Duration `yaml:"repeat_interval" min:"0"`             // between two sends of a text to a number by a company
	RepeatsADay    int           `yaml:"repeats_a_day" min:"0"`               // of a text to a number
	NumberADay     int           `yaml:"number_a_day" min:"0"`                // messages of a company to a number
	Singles        bool          `yaml:"singles"`                             // the three count single sends as well, not only batches
	CreditsADay    int           `yaml:"credits_a_day" min:"0"`               // of a company
	UnusualHour    int           `yaml:"unusual_hour" default:"5000" min:"0"` // messages of an hour below which no company is unusual; 0: none ever is
}

// Messages bounds a message's life.
type Messages struct {
	Validity         time.Duration `yaml:"validity" default:"24h" min:"1"`
	MaxSegments      int           `yaml:"max_segments" default:"255" min:"1" max:"255"` // the limit of the concatenation header
	QuietHours       string        `yaml:"quiet_hours" default:"none"`                   // when batches are not sent: 21:00-06:00, of Burundi
	InboundRetention time.Duration `yaml:"inbound_retention" default:"720h" min:"1"`     // of messages from handsets
}

// Inbound says what becomes of messages from handsets.
type Inbound struct {
	Assembly   time.Duration `yaml:"assembly" default:"10m" min:"1s"`               // how long a part of a long one waits for the others
	Repeats    time.Duration `yaml:"repeats" default:"2m" min:"0"`                  // within which the same one again is the carrier's repetition; 0: never
	StopWords  []string      `yaml:"stop_words" default:"STOP,ARRET,HAGARIKA"`      // first words that opt out
	StartWords []string      `yaml:"start_words" default:"START,REPRENDRE,TANGURA"` // and those that opt in again
	StopReply  string        `yaml:"stop_reply"`                                    // acknowledgements; empty: none
	StartReply string        `yaml:"start_reply"`
}

// Words are stop_words and start_words as handsets.Word writes them.
func (i *Inbound) Words() (stop, start []string) {
	for _, word := range i.StopWords {
		stop = append(stop, handsets.Word(word))
	}
	for _, word := range i.StartWords {
		start = append(start, handsets.Word(word))
	}
	return stop, start
}

// Webhooks says how customers are told.
type Webhooks struct {
	Timeout       time.Duration   `yaml:"timeout" default:"10s" min:"1"`
	RetryDelays   []time.Duration `yaml:"retry_delays" default:"10s,30s,1m,5m,15m"`
	AllowPrivate  bool            `yaml:"allow_private"` // development only
	EncryptionKey Secret          `yaml:"encryption_key"`

	EncryptionKeyFile SecretFile `yaml:"encryption_key_file"`

	InFlight int `yaml:"in_flight" default:"1024" min:"1"` // calls at once, per process
}

// Retention says how long what is over is kept.
type Retention struct {
	Messages        time.Duration `yaml:"messages" min:"0"`                       // with all that belongs to them, once they are final; 0: for ever
	Bodies          time.Duration `yaml:"bodies" min:"0"`                         // what messages say; 0: as long as the messages
	Numbers         time.Duration `yaml:"numbers" min:"0"`                        // their recipients; then they are obscured; 0: as long as the messages
	Receipts        time.Duration `yaml:"receipts" default:"168h" min:"1"`        // that match no message, or settled nothing
	Deliveries      time.Duration `yaml:"deliveries" default:"720h" min:"1"`      // of webhooks, with their attempts
	IdempotencyKeys time.Duration `yaml:"idempotency_keys" default:"24h" min:"1"` // with the answers under them
}
