package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/testenv"
)

// impersonal are the columns that hold words of the program, names from the configuration, or figures.
const impersonal = `
	batches.kind messages.carrier outbox.carrier outbox.original_carrier scheduled.carrier campaigns.paused ` +
	`companies.quiet_hours
	backlogs.carrier carrier_moves.from_carrier carrier_moves.to_carrier carrier_moves.reason segments.carrier ` +
	`segments.link
	receipts.carrier receipts.link receipts.outcome inbound.carrier inbound.link inbound.outcome inbound.part_number
	inbound_messages.carrier inbound_messages.answer inbound_routes.hours inbound_routes.address
	inbound_routes.carrier inbound_routes.keyword inbound_routes.sender
	opt_outs.source exports.language exports.gone sandbox.reason sweeps.name tallies.carrier tallies.to_carrier ` +
	`tallies.to_receipt carrier_segments.carrier carrier_segments.link unpurged.kind webhook_endpoints.events letters.kind
	ledger.kind dispatchers.name dispatchers.links dispatchers.given_up links.name links.carrier links.state ` +
	`links.last_error links.refused outbox.refused
	leases.name retired_carriers.carrier retired_carriers.to_carrier carrier_tariffs.carrier sender_carriers.carrier ` +
	`sender_carriers.state smpp_binds.process smpp_binds.mode smpp_binds.refused smpp_deliveries.taken_by ` +
	`api_tokens.alphabet
	verifications.carrier verifications.earlier conversions.carrier feedback.carrier batches.left_out contact_imports.stopped ` +
	`event_readers.home event_readers.timeline
	order_payments.way invoices.kind invoices.number invoices.way invoice_series.kind invoice_gaps.kind
	ebms_reports.name ebms_reports.refers_to
`

// TestPrivacyPage: docs/retention.md names every column of every table that can hold a number or a text, except
// impersonal ones, and no others.
func TestPrivacyPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/retention.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, column := range regexp.MustCompile("`([a-z_]+\\.[a-z_]+)`").FindAllStringSubmatch(string(text), -1) {
		if named[column[1]] = true; column[1] == "" {
			t.Error("nothing is named")
		}
	}
	for column := range strings.FieldsSeq(impersonal) {
		named[column] = true
	}
	rows, err := testenv.Pool(t).Query(t.Context(), `SELECT table_name || '.' || column_name
		FROM information_schema.columns
		JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND NOT EXISTS (SELECT FROM pg_inherits
		WHERE inhrelid = table_name::regclass)
			AND (data_type IN ('text', 'character varying', 'character', 'bytea', 'json', 'jsonb', 'ARRAY', 'inet', 'cidr',
			'USER-DEFINED', 'xml', 'tsvector')
				OR column_name ~ '(^|_)(handset|number|msisdn)$')
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(columns) < 50 {
		t.Fatalf("%d columns, %v", len(columns), err)
	}
	known := map[string]bool{}
	for _, column := range columns {
		if known[column] = true; !named[column] {
			t.Errorf("docs/retention.md does not name %s", column)
		}
	}
	tables := map[string]bool{}
	for column := range known {
		tables[regexp.MustCompile(`^[a-z_]+`).FindString(column)] = true
	}
	keys, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for column := range named {
		if strings.Contains(string(keys), "- `"+column+"`") {
			continue
		}
		if table := regexp.MustCompile(`^[a-z_]+`).FindString(column); tables[table] && !known[column] {
			t.Errorf("docs/retention.md names %s, which holds no text", column)
		}
	}
}
