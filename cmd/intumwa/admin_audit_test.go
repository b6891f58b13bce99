package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/sms"
)

const auditKeys = "companies balance_mismatches stuck_pending orphan_queue_entries unpaid_messages unrecorded_debits " +
	"purged_messages report_mismatches purchases_without_invoice invoices_without_purchase invoice_number_faults"

func TestAudit(t *testing.T) {
	s := newAdmin(t)
	s.mustCompany("a@example.com")
	for key, n := range s.admin("", auditKeys, "audit") {
		if want := map[bool]float64{true: 1}[key == "companies"]; n != want {
			t.Errorf("%s: %v, want %v", key, n, want)
		}
	}

	s.exec(`update balances set credits = credits + 1`)
	code, stdout, stderr := s.run("", "admin", "audit", "--json")
	var report map[string]float64
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || report["balance_mismatches"] != 1 {
		t.Errorf("a credit from nowhere: %q, %v", stdout, err)
	}
	if code != exitError || stderr == "" {
		t.Errorf("a credit from nowhere: exit code %d, stderr %q", code, stderr)
	}
}

func TestMessageShow(t *testing.T) {
	s := newAdmin(t)
	pool := s.pool()
	store := messages.New(pool)
	id := ulid.Make()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := store.Insert(context.Background(), tx, []*messages.Message{{
			ULID: id, CompanyID: 1, UserID: 1, Number: "+25761000001", Sender: "INTORE", Body: "canary",
			Encoding: sms.GSM7, Segments: 1, Carrier: "lumitel", Validity: 1e12,
		}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := s.admin(
		"", `id message_id batch_id company_id channel status to sender encoding segment_count test carrier failure_reason
		created_at sent_at failed_at waiting segments history webhook_deliveries`, "message", "show", "--id",
		strings.ToLower(id.String()))
	if shown["id"] != id.String() || shown["status"] != "pending" || shown["to"] != "+25761000001" {
		t.Errorf("got %v", shown)
	}
	waiting, _ := shown["waiting"].(map[string]any)
	if keys := slices.Sorted(maps.Keys(waiting)); !slices.Equal(
		keys, []string{"attempts", "claimed", "due_at", "expires_at", "refused", "refused_at"}) {
		t.Errorf("waiting has %v", keys)
	}
	for _, list := range []string{"segments", "webhook_deliveries"} {
		if items, ok := shown[list].([]any); !ok || len(items) != 0 {
			t.Errorf("%s is %v, not an empty list", list, shown[list])
		}
	}
	if code, stdout, _ := s.run("", "admin", "message", "show", "--id", id.String()); code != exitOK ||
		strings.Contains(stdout, "canary") {
		t.Errorf("for people: %d %q", code, stdout)
	}
	if code, stdout, _ := s.run("", "admin", "message", "show", "--id", "1"); code != exitOK ||
		!strings.Contains(stdout, id.String()) {
		t.Errorf("by the number of its webhooks: %d %s", code, stdout)
	}
	s.refused("not found", "", "admin", "message", "show", "--id", ulid.Make().String())
	s.refused("not found", "", "admin", "message", "show", "--id", "999")
	s.refused("neither a ULID", "", "admin", "message", "show", "--id", "x")
}
