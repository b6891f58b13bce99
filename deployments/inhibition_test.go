package deployments

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// matched reports whether all matchers of Alertmanager (name="v", name=~"v", their negations) match an alert's labels.
func matched(t *testing.T, matchers any, labels map[string]string) bool {
	t.Helper()
	list, _ := matchers.([]any)
	if len(list) == 0 {
		t.Fatal("a rule without matchers concerns every alert")
	}
	for _, one := range list {
		parts := regexp.MustCompile(`^(\w+)(=~|!~|!=|=)"(.*)"$`).FindStringSubmatch(text(one))
		if parts == nil {
			t.Fatalf("%v is no matcher", one)
		}
		is := labels[parts[1]] == parts[3]
		if strings.HasSuffix(parts[2], "~") {
			is = regexp.MustCompile("^(?:" + parts[3] + ")$").MatchString(labels[parts[1]])
		}
		if is == strings.HasPrefix(parts[2], "!") {
			return false
		}
	}
	return true
}

// TestInhibition: an alert silences only the consequences of its cause, by name. No other alert, of today or tomorrow,
// is silenced by chance.
func TestInhibition(t *testing.T) {
	rules, _ := documents(t, "prometheus/alertmanager.yaml")[0]["inhibit_rules"].([]any)
	silenced := map[string][]string{}
	names := map[string]bool{}
	for name, rule := range alerts(t) {
		names[name] = true
		labels := map[string]string{"alertname": name, "severity": text(at(rule, "labels", "severity")), "carrier": "leo",
			"link": "leo-1"}
		for _, rule := range rules {
			if matched(t, at(rule, "target_matchers"), labels) {
				for source := range alerts(t) {
					if matched(t, at(rule, "source_matchers"), map[string]string{"alertname": source}) {
						silenced[source] = append(silenced[source], name)
					}
				}
			}
		}
	}
	for source, list := range silenced {
		if !slices.Contains([]string{"DatabaseDown", "CarrierAllLinksDown", "BindRejected"}, source) {
			t.Errorf("%s silences %v", source, list)
		}
		for _, own := range []string{source, "LedgerMismatch", "ArchiveOld", "DatabaseUnprotected", "DatabaseUnreached",
			"RedisDown", "QueueUnusable", "GatewayDown", "GatewayAbsent",
			"BindRejected", "LinkBroken", "LinkStalled", "LinkThrottledHard", "SubmitUnknownOutcome", "UnmatchedReceipts",
			"WebhooksAllFailing", "CertificateExpiry", "UnusualSending"} {
			if slices.Contains(list, own) {
				t.Errorf("%s silences %s, which has a cause of its own", source, own)
			}
		}
	}
	for _, consequence := range []string{"ApiErrorBudget", "QueueAgeCritical", "TaskStalled", "HandsetMessagesWait",
		"CarrierAllLinksDown", "ReceiptsRefused"} {
		if !slices.Contains(silenced["DatabaseDown"], consequence) {
			t.Errorf("without PostgreSQL %s rings too", consequence)
		}
	}
	for _, rule := range rules { // names that no alert has silence nothing
		for _, matchers := range []any{at(rule, "source_matchers"), at(rule, "target_matchers")} {
			list, _ := matchers.([]any)
			for _, one := range list {
				for _, name := range regexp.MustCompile(`[A-Z]\w+`).FindAllString(text(one), -1) {
					if !names[name] {
						t.Errorf("%v: there is no alert %s", one, name)
					}
				}
				if strings.ContainsAny(text(one), "*!") {
					t.Errorf("%v: name each alert", one)
				}
			}
		}
	}
}
