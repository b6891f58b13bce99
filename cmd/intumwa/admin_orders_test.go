package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/texts"
)

const sellerConfig = `database: {url: %q}
operator:
  name: Nyota SURL
  nif: "4000123456"
  trade_register: RC 1
  address: Rohero
  phone: "22220000"
  taxes: [{name: TVA, rate: 18%%, from: 2020-01-01}]
  invoices: {legal_form: SURL, activity_sector: Telecom, fiscal_center: DMC, commune: Mukaza, quarter: Rohero}
`

const orderKeys = "order_id company_id credits bif state total received left created_at expires_at paid_at invoice " +
	"cancelled_at"

// TestAdminOrders: orders, payments, invoices and credit notes by command, with their JSON.
func TestAdminOrders(t *testing.T) {
	t.Parallel()
	database := testenv.Database(t)
	s := newShell(t, fmt.Sprintf(sellerConfig, database))
	s.mustCompany("a@example.com")
	s.refused("no price", "", "admin", "order", "create", "--company", "1", "--credits", "1000")
	s.exec(`insert into credit_prices (company_id, valid_from, centimes) values (0, '2026-01-01', 1000)`)
	s.refused("there is no company", "", "admin", "order", "create", "--company", "9", "--credits", "1000")
	s.refused("1 to 100000000 credits", "", "admin", "order", "create", "--company", "1", "--amount", "5")
	placed := s.admin("", orderKeys, "order", "create", "--company", "1", "--amount", "11805")
	if placed["credits"] != 1000.0 || placed["total"] != 11800.0 || placed["state"] != "open" {
		t.Errorf("ordered %v", placed)
	}
	pay := func(more ...string) []string {
		return append([]string{"order", "pay", "--id", "1", "--way", "bank"}, more...)
	}
	part := s.admin("", orderKeys, pay("--amount", "5000", "--reference", "VIR 1")...)
	if part["left"] != 6800.0 || part["state"] != "open" || part["invoice"] != nil {
		t.Errorf("a part: %v", part)
	}
	s.refused("--again", "", append([]string{"admin"}, pay("--amount", "6800", "--reference", "vir-1")...)...)
	s.refused("--more", "", append([]string{"admin"}, pay("--amount", "9000", "--reference", "VIR 2")...)...)
	s.refused("in the future", "", append([]string{"admin"}, pay("--amount", "1", "--reference", "3", "--on",
		"2999-01-01")...)...)
	whole := s.admin("", orderKeys+" sold invoice_total rest", pay("--amount", "6805", "--reference", "VIR 2")...)
	if whole["sold"] != 1000.0 || whole["invoice"] != "F000001" || whole["rest"] != 5.0 || whole["state"] != "paid" {
		t.Errorf("the rest: %v", whole)
	}
	s.refused("is paid already", "", append([]string{"admin"}, pay("--amount", "1", "--reference", "VIR 3")...)...)
	s.refused("is paid already", "", "admin", "order", "cancel", "--id", "1", "--reason", "x")
	s.exec(`update orders set credits = 900, centimes = 2000`) // as if more had been sold, with other taxes
	if shown := s.admin("", orderKeys+" payments", "order", "show", "--id", "1"); shown["credits"] != 1000.0 ||
		shown["total"] != 11800.0 {
		t.Errorf("the order: %v", shown)
	}

	s.refused("at most these", "", "admin", "invoice", "credit", "--number", "F1", "--reason", "x", "--credits", spent(s))
	invoiceKeys := "number kind order_id company_id issued_at credits bif net total"
	note := s.admin("", invoiceKeys+" refers_to reason", "invoice", "credit", "--number", "F1", "--reason", "wrong",
		"--credits", "100")
	if note["number"] != "A000001" || note["refers_to"] != "F000001" || note["total"] != 1180.0 {
		t.Errorf("the credit note: %v", note)
	}
	s.refused("has this credit note already", "", "admin", "invoice", "credit", "--number", "F000001", "--reason", "wrong",
		"--credits", "100")
	shown := s.admin("", invoiceKeys+" taxes paid way seller customer issued_by credit_notes", "invoice", "show",
		"--number", "F000001")
	if fmt.Sprint(shown["credit_notes"]) != "[A000001]" || !strings.Contains(fmt.Sprint(shown["seller"]), "4000123456") ||
		!strings.Contains(fmt.Sprint(shown["taxes"]), "rate:18%") {
		t.Errorf("the invoice: %v", shown)
	}
	code, stdout, _ := s.run("", "admin", "invoice", "list", "--from", "2020-01", "--to", "2024-01", "--json")
	if code != exitOK || strings.TrimSpace(stdout) != "[]" {
		t.Errorf("no invoices: %q", stdout)
	}
	month := time.Now().In(texts.Bujumbura).Format("2006-01")
	_, stdout, _ = s.run("", "admin", "invoice", "list", "--from", month, "--to", month, "--csv")
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if err != nil || len(rows) != 3 || rows[0][11] != "TVA" || rows[1][11] != "1800" || rows[2][11] != "-180" {
		t.Errorf("%q, %v", rows, err)
	}

	s.admin("", orderKeys, "order", "create", "--company", "1", "--credits", "5")
	s.admin("", orderKeys+" reason", "order", "cancel", "--id", "2", "--reason", "not paid")
	code, stdout, _ = s.run("", "admin", "order", "list", "--state", "cancelled", "--json")
	var list []map[string]any
	if err := json.Unmarshal([]byte(stdout), &list); code != exitOK || err != nil || len(list) != 1 {
		t.Errorf("cancelled: %q", stdout)
	}

	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	reports := newShell(t, strings.Replace(fmt.Sprintf(sellerConfig, database), "2020-01-01}", "2020-01-01, ebms: vat}",
		1)+"ebms: {url: 'http://127.0.0.1:1', username: u, system_id: ws1, password_file: "+password+"}\n")
	_, stdout, _ = reports.run("", "admin", "invoice", "pending")
	if lines := strings.Split(stdout, "\n"); len(lines) < 3 || strings.Index(lines[0], "reason") != strings.Index(lines[1],
		"issued without") {
		t.Errorf("what was issued before the eBMS: %s", stdout)
	}
	reports.refused("with --settled", "", "admin", "invoice", "report", "--number", "F1")
	reports.refused("there is no F000077", "", "admin", "invoice", "report", "--number", "F77", "--settled", "by hand")
	for _, name := range []string{"F1", "A1"} {
		if got := reports.admin("", "invoice state issued_at tries next_attempt reason note identifier", "invoice", "report",
			"--number", name, "--settled", "by hand"); got["state"] != "settled" {
			t.Errorf("%s: %v", name, got)
		}
	}
	if all := reports.list("invoice", "pending"); len(all) != 0 {
		t.Errorf("after that: %v", all)
	}

	code, stdout, stderr := s.run("", "admin", "restored", "--json")
	if code != exitOK || !strings.Contains(stdout, `"last_invoices":{"sale":"F000001","credit_note":"A000001"}`) ||
		!strings.Contains(stderr, "admin invoice skip") {
		t.Errorf("restored: %q %q", stdout, stderr)
	}
	if got := s.admin("", "kind skipped next", "invoice", "skip", "--last", "F7", "--reason",
		"restored"); got["skipped"] != 6.0 || got["next"] != "F000008" {
		t.Errorf("skipped %v", got)
	}
	if got := s.admin("", "kind skipped next", "invoice", "skip", "--last", "F3", "--reason",
		"again"); got["skipped"] != 0.0 || got["next"] != "F000008" {
		t.Errorf("skipped again %v", got)
	}
	if code, stdout, _ := s.run("", "admin", "audit", "--json"); code != exitOK {
		t.Errorf("audit: %s", stdout)
	}
	s.exec(`alter table invoices disable trigger all; delete from invoices`)
	if code, stdout, _ := s.run("", "admin", "audit", "--json"); code != exitError ||
		!strings.Contains(stdout, `"purchases_without_invoice":3`) {
		t.Errorf("audit of a lost invoice: %s", stdout)
	}
}

// spent spends nearly all of company 1's credits, and returns a number of credits that it does not have any more.
func spent(s *shell) string {
	s.exec(`with b as (update balances set credits = credits - 850 where company_id = 1 returning credits)
		insert into ledger (company_id, kind, amount, balance_after) select 1, 'correction', -850, credits from b`)
	return "900"
}
