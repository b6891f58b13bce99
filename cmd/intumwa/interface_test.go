package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"intumwa/texts"
)

// keysOf returns the keys of a JSON object, or of the first one of an array, in order.
func keysOf(t *testing.T, text string) (keys []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	depth, key := 0, false
	for {
		token, err := d.Token()
		if err != nil {
			return keys
		}
		switch delim, is := token.(json.Delim); {
		case is && delim == '[' && depth == 0:
		case is && (delim == '{' || delim == '['):
			depth++
			key = depth == 1
		case is:
			if depth--; depth == 0 {
				return keys
			}
			key = depth == 1
		case depth == 1 && key:
			keys = append(keys, token.(string))
			key = false
		case depth == 1:
			key = true
		}
	}
}

// TestInterface: each provisioning command prints the keys that scripts rely on, in that order. It may print more.
func TestInterface(t *testing.T) {
	s := newAdminOf(t)
	s.exec(`insert into links (name, carrier, state) values ('leo-1', 'leo', 'bound')`)
	today := time.Now().In(texts.Bujumbura)
	for _, row := range []struct{ command, keys string }{
		{"user create --email a@example.com --name A --password-stdin", "user_id email"},
		{"token create --user a@example.com --name A", "token_id token"},
		{"token revoke --id 1", "token_id revoked"},
		{"company create --owner a@example.com --name A --approved --verified --credits 5", "company_id credits"},
		{"company set --id 1 --smart-encoding=true", "company_id approved verified"},
		{"credits add --company 1 --amount 5 --note paid", "company_id credits"},
		{"credits add --company 1 --amount 5 --correction --note mistake", "company_id credits"},
		{"price set --company 1 --from " + today.AddDate(0, 0, 2).Format(time.DateOnly) + " --bif 12.5",
			"company_id valid_from bif"},
		{"price set --company 1 --from " + today.AddDate(0, 0, 1-today.Day()).Format(time.DateOnly) +
			" --bif 12.5", "company_id valid_from bif"},
		{"price list", "company_id valid_from bif"},
		{"order create --company 1 --credits 10", "order_id company_id credits state total received left invoice"},
		{"order list --state open", "order_id company_id credits state total received left invoice"},
		{"order pay --id 1 --amount 100000 --way cash --reference 1 --more", "order_id state received left invoice"},
		{"order show --id 1", "order_id state invoice payments"},
		{"invoice pending", ""},
		{"invoice list --from 2026-01 --to 2030-12", "number kind order_id company_id issued_at credits net total"},
		{"tariff set --carrier leo --from 2026-02-01 --bif 7", "carrier valid_from bif"},
		{"tariff list", "carrier valid_from bif"},
		{"report money --from 2026-01-01 --to 2026-01-31 --company 1", "company_id company from to currency provisional " +
			"opening purchases purchases_amount usage usage_amount refunds refunds_amount corrections corrections_amount " +
			"net_usage net_usage_amount closing usage_lines not_counted"},
		{"report money --from 2026-01 --to 2026-02", "company_id opening closing"},
		{"report invoice --from 2026-01 --to 2026-01", ""},
		{"sender create --company 1 --name ISOKO --country BI", "sender_id name approved"},
		{"sender set --id 1 --approved=true", "sender_id approved"},
		{"sender carrier set --id 1 --carrier leo --state sent --sent-on 2026-03-01",
			"sender_id name carrier state reason sent_on"},
		{"sender carrier list --waiting", "id sender_id name carrier state reason sent_on"},
		{"webhook set --company 1 --url http://127.0.0.1:1/", "company_id url secret active"},
		{"webhook set --company 1 --active=true", "company_id url active"},
		{"webhook rotate --company 1", "secret previous_until"},
		{"webhook recover --company 1 --since 24h", "resent"},
		{"webhook resend --id 8", "resent"},
		{"webhook deliveries --company 1", "id message_id event state attempts"},
		{"test-number set --user a@example.com --number 79000001 --verified", "user_id phone_number verified"},
		{"smpp create --company 1 --name A --networks 192.0.2.0/24", "system_id password"},
		{"smpp list", "id system_id company_id company name networks sessions window tps binds waiting " +
			"last_used_at revoked_at"},
		{"smpp sessions", "id key_id system_id company_id company peer mode process since in_flight unanswered " +
			"submitted refused"},
		{"smpp set --id 2 --tps 100", "id system_id networks sessions window tps"},
		{"smpp unbind --id 2", "id unbound"},
		{"smpp revoke --id 2", "id revoked"},
		{"links", "carrier link state window in_flight tps since"},
		{"link pause --name leo-1", "link state"},
		{"link resume --name leo-1", "link state"},
		{"company cancel --id 1", "cancelled credits_returned"},
		{"number erase --number 79000001", "events"},
		{"report quality --from 2026-03-01 --to 2026-03-31", "day carrier accepted waiting at_carrier sent failed expired " +
			"success_percent segments credits to_carrier_p50 to_receipt_p99 reasons"},
		{"audit", "companies balance_mismatches stuck_pending orphan_queue_entries"},
	} {
		if strings.HasPrefix(row.command, "webhook resend") {
			s.exec(`insert into webhook_undelivered (company_id, id, at, phone_number) values (1, 8, now(), '')`)
		}
		if row.command == "smpp sessions" {
			s.exec(`insert into smpp_binds (account, process, peer, mode, seen_at) values (2, 'p0', '192.0.2.1:4000', 'receiver',
				now() + '1 h')`)
		}
		if strings.HasPrefix(row.command, "report quality") {
			s.exec(`insert into tallies (company_id, day, chunk, carrier, sender, kind, channel, cost_center, status, reason,
				messages, segments)
				values (0, '2026-03-01', -1, 'leo', '', 0, 0, '', 1, '', 1, 1)`)
		}
		code, stdout, stderr := s.run("secret", append([]string{"admin", "--json"}, strings.Fields(row.command)...)...)
		found, want := keysOf(t, stdout), strings.Fields(row.keys)
		printed := slices.DeleteFunc(slices.Clone(found), func(key string) bool { return !slices.Contains(want, key) })
		if code != exitOK || !slices.Equal(printed, want) {
			t.Errorf("%s: %d %s%s, keys %v, want %v", row.command, code, stdout, stderr, found, want)
		}
		if human := strings.Contains(row.command, "webhook set --company 1 --active"); human &&
			strings.Contains(stdout, "whsec_") {
			t.Errorf("%s prints the secret", row.command)
		}
	}
}
