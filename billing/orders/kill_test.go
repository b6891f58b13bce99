package orders_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/billing/orders"
)

// payerURL has the database of a process that pays.
const payerURL = "INTUMWA_TEST_PAYER"

// TestPayer is the process of [TestKilledWhilePaying]: it pays all open orders, in an order of its own.
func TestPayer(t *testing.T) {
	url := os.Getenv(payerURL)
	if url == "" {
		return
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	rows, err := pool.Query(t.Context(), `SELECT id FROM orders WHERE paid_at IS NULL`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	store := orders.New(pool, options)
	for _, id := range ids {
		_, err := pay(t.Context(), pool, store, id, orders.Payment{Amount: 118, Way: orders.Bank,
			Reference: fmt.Sprint("VIR ", id), Again: true})
		if err != nil && !errors.Is(err, orders.ErrPaid) {
			t.Fatal(err)
		}
	}
}

// Two processes pay the same 1,000 orders, and one of them is killed again and again in the middle: the ledger and the
// invoices are equal, no number is missing, and none is used twice.
func TestKilledWhilePaying(t *testing.T) {
	const companies, each, kills = 10, 100, 5
	w := open(t, companies, options)
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO orders (company_id, credits, centimes) SELECT c, 10, 1000
		FROM generate_series(1, $1) c, generate_series(1, $2)`, companies, each); err != nil {
		t.Fatal(err)
	}
	paid := func() (n int) {
		if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM invoices`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	start := func() (*exec.Cmd, *strings.Builder) {
		var out strings.Builder
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPayer$")
		c.Env = append(os.Environ(), payerURL+"="+w.pool.Config().ConnString())
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c, &out
	}
	steady, said := start()
	for k := range kills {
		victim, _ := start()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for paid() < (k+1)*companies*each/(kills+2) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
		_ = victim.Process.Signal(syscall.SIGKILL)
		if err := victim.Wait(); err == nil {
			t.Error("the process had ended before it was killed")
		}
	}
	if err := steady.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for company := range int64(companies) {
		if got := w.balance(company + 1); got != 10*each {
			t.Errorf("company %d has %d credits", company+1, got)
		}
	}
	if n := paid(); n != companies*each {
		t.Errorf("%d invoices", n)
	}
	w.sound(companies * each)
}
