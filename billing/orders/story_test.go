package orders_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts"
	"intumwa/billing/ebms"
	"intumwa/billing/orders"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/sms"
	"intumwa/tools/ebmssim"
	"intumwa/tools/rig"
)

const secret = "secret"

// TestProcess is a process of TestSalesAreReported, which says in the environment what it is.
func TestProcess(t *testing.T) {
	switch os.Getenv("SALES_PROCESS") {
	case "office":
		sim, err := ebmssim.New(ebmssim.Options{Username: system, Password: secret, Store: os.Getenv("SALES_STORE")})
		if err != nil {
			t.Fatal(err)
		}
		var config net.ListenConfig
		l, err := config.Listen(t.Context(), "tcp", os.Getenv("SALES_OFFICE"))
		if err != nil {
			t.Fatal(err)
		}
		t.Error(sim.Serve(context.WithoutCancel(t.Context()), l))
	case "gateway":
		payAndReport(t)
	}
}

// payAndReport pays all orders and reports the invoices until it is killed.
func payAndReport(t *testing.T) {
	pool, err := postgres.Open(t.Context(), os.Getenv("SALES_DATABASE"), postgres.Options{MaxConns: 4, Name: "sales"})
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(os.Getenv("SALES_ORDERS"))
	if err != nil {
		t.Fatal(err)
	}
	store := orders.New(pool, reported)
	done := make(chan error, 1)
	go func() {
		done <- ebms.NewReporter(pool, ebms.Options{Read: store.ToReport, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
			Client: ebms.NewClient(ebms.Access{URL: "http://" + os.Getenv("SALES_OFFICE"), Username: system,
				Password: secret}), Metrics: prometheus.NewRegistry()}).Run(t.Context())
	}()
	for i := range n {
		id := i + 1
		if os.Getenv("SALES_BACKWARDS") != "" {
			id = n - i
		}
		_, err := pay(t.Context(), pool, store, int64(id), orders.Payment{Amount: 1_000_000, Way: orders.Cash,
			Reference: fmt.Sprint("receipt ", id), Again: true, More: true})
		if err != nil && !errors.Is(err, accounts.ErrExists) { // the other process has paid it
			t.Fatal(err)
		}
	}
	t.Error(<-done) // it does not end
}

// TestSalesAreReported: two processes pay the same orders and report their invoices. One of them and the tax office's
// system are killed in between. In the end each order is paid once, and ledger, invoices and the office's list agree.
func TestSalesAreReported(t *testing.T) {
	testenv.Long(t) // a killed process's claim lasts a minute
	const sales = 1000
	w := open(t, 50, reported)
	for i := range sales {
		w.place(sms.CompanyID(1+i%50), 100, 1000)
	}
	office := rig.FreeAddress()
	folder := t.TempDir()
	start := func(of string, env ...string) *exec.Cmd {
		t.Helper()
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestProcess$", "-test.timeout", "10m")
		log, err := os.OpenFile(filepath.Join(folder, of+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = log.Close() })
		c.Stdout, c.Stderr = log, log
		c.Env = append(os.Environ(), append(env, "SALES_PROCESS="+of, "SALES_OFFICE="+office,
			"SALES_STORE="+filepath.Join(folder, "store"), "SALES_ORDERS="+strconv.Itoa(sales),
			"SALES_DATABASE="+w.pool.Config().ConnString())...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	kill := func(c *exec.Cmd) { _ = c.Process.Kill(); _ = c.Wait() } // -9
	counts := func() ebms.Counts {
		t.Helper()
		c, err := ebms.Count(t.Context(), w.pool)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	received := func() (n int64) {
		t.Helper()
		if err := w.pool.QueryRow(t.Context(), `select count(*) from ebms_reports where finished_at is not null`).Scan(
			&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(8 * time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: late; %+v, %d received", what, counts(), received())
			}
		}
	}
	authority := start("office")
	first, second := start("gateway"), start("gateway", "SALES_BACKWARDS=1")
	defer func() { kill(second); kill(authority) }()
	until("some are paid", func() bool { n := received(); return n > 0 && counts().Waiting+n > sales/5 })
	kill(first)
	kill(authority)
	t.Logf("killed after %d sales and %d reports", counts().Waiting+received(), received())
	authority = start("office")
	until("half are received", func() bool { return received() > sales/2 })
	kill(authority)
	authority = start("office")
	until("all are received", func() bool { return received() == sales })

	w.sound(sales)
	all, err := w.After(t.Context(), orders.Sale, 0, sales+1)
	if err != nil || len(all) != sales || counts().Waiting != 0 || counts().Refused != 0 {
		t.Fatalf("%d invoices, %+v, %v", len(all), counts(), err)
	}
	response, err := http.Get("http://" + office + "/invoices.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var list []ebmssim.Invoice
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil || len(list) != sales {
		t.Fatalf("the office has %d invoices, %v", len(list), err)
	}
	paid := map[int64]bool{}
	for i, invoice := range all {
		if got := list[i]; got.Number != invoice.Name() || invoice.Number != int64(i)+1 || paid[invoice.Order] ||
			!strings.HasSuffix(got.Identifier, "/"+invoice.Name()) {
			t.Errorf("%d: %s, %s of order %d", i, got.Number, invoice.Name(), invoice.Order)
		}
		paid[invoice.Order] = true
	}
	t.Logf("%d invoices, ended after %s", sales, all[sales-1].Issued.Sub(all[0].Issued))
}
