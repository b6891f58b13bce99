package configs

import "time"

// Default is the configuration of an empty file. It lacks what has no default: the two URLs and a carrier.
func Default() *Config {
	return &Config{
		API: API{
			Listen:             "127.0.0.1:8080",
			TrustedProxies:     []string{},
			RateLimitPerMinute: 500,
			MaxBody:            16 << 20,
			LargeBody:          64 << 10,
			MaxLargeBodies:     32,
			BodyMemory:         64 << 20,
			LookupsPerUser:     2,
			MaxConnections:     10000,

			MaxConnectionsPerAddress: 1000,

			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       30 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       time.Minute,
		},
		Ops: Ops{Listen: "127.0.0.1:9090", Roles: map[string]string{}},
		Dashboard: Dashboard{
			Listen:         "127.0.0.1:8081",
			TrustedProxies: []string{},
			SecureCookies:  true,
			AdminTOTP:      true,
			SessionIdle:    12 * time.Hour,
		},
		Mail:       Mail{TLS: "starttls"},
		Log:        Log{Level: "info", Format: "text"},
		Database:   Database{LookupTimeout: 2 * time.Second},
		Redis:      Redis{Addresses: []Address{}, Prefix: "intumwa"},
		TestSender: "INTUMWATEST",
		Accounts:   Accounts{TestQuota: 5, TestNumberReplacements: 3},
		Billing:    Billing{Refund: "unsubmitted"},
		Messages: Messages{
			Validity:         24 * time.Hour,
			MaxSegments:      255,
			ReceiptRetention: 7 * 24 * time.Hour,
			InboundRetention: 30 * 24 * time.Hour,
		},
		Webhooks: Webhooks{
			Timeout: 10 * time.Second,
			RetryDelays: []time.Duration{
				10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute,
			},
			InFlight:       1024,
			PerEndpoint:    4,
			PerEndpointMax: 32,
		},
		Retention: Retention{Deliveries: 30 * 24 * time.Hour},
		Carriers:  []Carrier{},
	}
}

// DefaultCarrier is a carrier of which the file gives nothing.
func DefaultCarrier() Carrier {
	return Carrier{
		Prefixes:         []string{},
		NumberOverrides:  []string{},
		Confirm:          "receipt",
		OnReceiptTimeout: "failed",
		ReceiptTimeout:   time.Hour,
		MessageIDFormat:  "auto",
		ReceiptStates:    map[string]string{},
		Concat:           "udh8",
		Alphabet:         "gsm7",
		ValidityPeriod:   "relative",
		SourceTON:        5,
		SourceNPI:        0,
		DestTON:          1,
		DestNPI:          1,
		TLVs:             map[string]string{},
		ErrorClasses:     map[string]string{},
		UserReference:    true,
		OnAmbiguous:      "resend",
		UnknownHold:      5 * time.Minute,
		RetryMin:         time.Second,
		RetryMax:         time.Minute,
		Failover:         []string{},
		FailoverAfter:    10 * time.Second,
		MaxUnmatched:     50_000,
		MaxInbound:       20_000,
		Links:            []Link{},
	}
}

// DefaultLink is a link of which the file gives nothing.
func DefaultLink() Link {
	return Link{
		Bind:            "transceiver",
		Binds:           1,
		Window:          100,
		TPS:             100,
		Weight:          1,
		EnquireLink:     30 * time.Second,
		ResponseTimeout: 10 * time.Second,
		EnquireTimeout:  10 * time.Second,
		ConnectTimeout:  10 * time.Second,
		BindTimeout:     30 * time.Second,
	}
}
