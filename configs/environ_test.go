package configs

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"intumwa/sms"
)

const twoCarriers = `
carriers:
  - name: lumitel
    links: [{name: lumitel-1}, {name: lumitel.2, tls: true}]
  - name: leo
    links: [{name: leo-1}]
`

func TestOverrides(t *testing.T) {
	c := load(t, twoCarriers,
		"INTUMWA_API_LISTEN=:1",
		"INTUMWA_API_RATE_LIMIT_PER_MINUTE=9",
		"INTUMWA_API_TRUSTED_PROXIES=10.0.0.1, 10.0.0.2",
		"INTUMWA_TEST_SENDER=TRY",
		"INTUMWA_ACCOUNTS_OTP_KEY="+otpKey, "INTUMWA_ACCOUNTS_ENCRYPTION_KEY=k",
		"INTUMWA_WEBHOOKS_ENCRYPTION_KEY=k",
		"INTUMWA_WEBHOOKS_RETRY_DELAYS=1s,2s",
		"INTUMWA_WEBHOOKS_ALLOW_PRIVATE=true",
		"INTUMWA_DATABASE_URL=postgres://a:b@c/d?sslmode=require",
		"INTUMWA_CARRIERS_0_DEFAULT=true",
		"INTUMWA_CARRIERS_LUMITEL_RECEIPT_STATES=UNKNOWN=failed,ACCEPTD=none",
		"INTUMWA_CARRIERS_LUMITEL_LINKS_LUMITEL_1_PASSWORD=p,$q",
		"INTUMWA_CARRIERS_0_LINKS_LUMITEL_2_TPS=5",
		"INTUMWA_CARRIERS_LEO_LINKS_0_TLS=true",
		"INTUMWA_CARRIERS_1_LINKS_0_WINDOW=3",
		"INTUMWA_CARRIERS_LEO_LINKS_LEO_1_WINDOW=4", // the name wins over the index
		"INTUMWA_CARRIERS_LUMITEL_LINKS_LUMITEL_1_TLS_CA=/ca.pem",
		"INTUMWA_CARRIERS_LUMITEL_PREFIXES=",
	)
	check := func(what string, ok bool) {
		t.Helper()
		if !ok {
			t.Errorf("%s was not overridden", what)
		}
	}
	check("api.listen", c.API.Listen == ":1")
	check("api.rate_limit_per_minute", c.API.RateLimitPerMinute == 9)
	check("api.trusted_proxies", slices.Equal(c.API.TrustedProxies, []string{"10.0.0.1", "10.0.0.2"}))
	check("test_sender", c.TestSender == "TRY")
	check("webhooks.retry_delays", slices.Equal(c.Webhooks.RetryDelays, []time.Duration{time.Second, 2 * time.Second}))
	check("webhooks.allow_private", c.Webhooks.AllowPrivate)
	check("database.url", string(c.Database.URL) == "postgres://a:b@c/d?sslmode=require")
	lumitel, leo := c.Carriers[0], c.Carriers[1]
	check("default", lumitel.Default)
	check("receipt_states", maps.Equal(lumitel.ReceiptStates, map[string]Word[Outcome]{"UNKNOWN": meaning(Outcome(sms.Failed)), "ACCEPTD": meaning(Outcome(sms.Pending))}))
	check("prefixes", len(lumitel.Prefixes) == 0)
	check("password", string(lumitel.Links[0].Password) == "p,$q")
	check("tls.ca", lumitel.Links[0].TLS == TLS{Enabled: true, CA: "/ca.pem"})
	check("tps", lumitel.Links[1].TPS == 5)
	check("tls", leo.Links[0].TLS.Enabled)
	check("window", leo.Links[0].Window == 4)
	if w := c.Warnings(Roles...); len(w) > 0 {
		t.Errorf("warnings: %v", w)
	}
}

// What walk visits, the environment can override: every scalar key has a variable (rule choices 11.1).
func TestEveryKeyHasAVariable(t *testing.T) {
	c := load(t, twoCarriers)
	seen := map[string]string{}
	walk(c, func(l leaf) {
		for _, name := range l.variables {
			if other, taken := seen[name]; taken {
				t.Errorf("%s and %s share %s", other, l.path, name)
			}
			seen[name] = l.path
			// Kubernetes' value is a URL, which only these are never: it is told apart.
			if serviceLink.MatchString(name) && !strings.HasSuffix(name, "_PORT") {
				t.Errorf("%s looks like a variable of Kubernetes", name)
			}
		}
	})
	for _, name := range []string{"INTUMWA_REDIS_MASTER_NAME", "INTUMWA_BILLING_REFUND", "INTUMWA_CARRIERS_LEO_CONFIRM"} {
		if seen[name] == "" {
			t.Errorf("no key has %s", name)
		}
	}
}

// TestServicesOfKubernetes: what Kubernetes says of a service called intumwa-redis is no port of ours.
func TestServicesOfKubernetes(t *testing.T) {
	c := load(t, "redis: {host: r}", "INTUMWA_REDIS_PORT=tcp://10.0.0.1:6379", "INTUMWA_DATABASE_PORT=5433")
	if c.Redis.Port != 0 || c.Database.Port != 5433 {
		t.Errorf("ports %d, %d", c.Redis.Port, c.Database.Port)
	}
}

func TestWrongOverrides(t *testing.T) {
	got := refused(t, twoCarriers, "INTUMWA_MESSAGES_VALIDITY=long", "INTUMWA_CARRIERS_LEO_RECEIPT_STATES=UNKNOWN",
		"INTUMWA_WEBHOOKS_RETRY_DELAYS=1s,x", "INTUMWA_API_MAX_BODY=")
	want := []string{
		`INTUMWA_API_MAX_BODY: must be a whole number`,
		`INTUMWA_MESSAGES_VALIDITY: must be a duration such as 90s, 5m or 24h`,
		`INTUMWA_WEBHOOKS_RETRY_DELAYS: must be a duration such as 90s, 5m or 24h`,
		`INTUMWA_CARRIERS_LEO_RECEIPT_STATES: must be comma-separated key=value pairs`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestMisspeltVariablesAreWarnings(t *testing.T) {
	c := load(t, "redis: {prefix: '${INTUMWA_MINE}'}\naccounts: {otp_key: "+otpKey+", encryption_key: k}\nwebhooks: {encryption_key: k}",
		"INTUMWA_API_LISTN=x", "INTUMWA_CARRIERS_7_NAME=x", "INTUMWA_CONFIG=x", "INTUMWA_MINE=x", "PATH=x",
		"INTUMWA_SERVICE_HOST=10.0.0.1", "INTUMWA_PORT_8080_TCP_ADDR=10.0.0.1", "INTUMWA_API_SERVICE_PORT_HTTP=80")
	var got []string
	for _, w := range c.Warnings(Roles...) {
		got = append(got, w.Key)
	}
	if want := []string{"INTUMWA_API_LISTN", "INTUMWA_CARRIERS_7_NAME"}; !slices.Equal(got, want) {
		t.Errorf("warnings for %s, want for %s", strings.Join(got, " "), strings.Join(want, " "))
	}
}
