package dispatcher

import (
	"context"
	"testing"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/dispatcher/setup"
	"intumwa/messages"
	"intumwa/smpp"
	"intumwa/sms"
)

// TestSettlingWaitsForNoBalance: messages become final while their balance is
// locked, and are refunded as soon as it is free. A settlement that waited for
// the balance would fail at the lock's timeout.
func TestSettlingWaitsForNoBalance(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.d.core.Opts.Refund = setup.RefundFailed
	live, test := b.begun(1), b.begun(1)
	b.exec(`UPDATE messages SET test = true WHERE id = 2`)
	b.exec(`UPDATE balances SET test_used = 3`)
	ctx := context.WithoutCancel(t.Context())
	holder, err := b.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(ctx) }()
	if _,
		err := holder.Exec(
		ctx, `SET LOCAL idle_in_transaction_session_timeout = 0; SELECT FROM balances FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	refused := ended(smpp.Rejected, smpp.StatusInvDstAddr, nil)
	b.settle(settling.Settlement{Results: []core.Result{refused(live, 1), refused(test, 1)}})
	if err := b.d.housekeeping.PayOwed(t.Context()); err != nil { // the balances are still locked
		t.Error(err)
	}
	for _, m := range []*core.InFlight{live, test} {
		if status, _ := b.status(m.Msg.ID); status != sms.Failed {
			t.Errorf("message %d is %v", m.Msg.ID, status)
		}
	}
	state := func(credits, used, owed int) {
		t.Helper()
		c, u, o := b.count(`SELECT credits FROM balances`), b.count(`SELECT test_used FROM balances`),
			b.count(`SELECT count(*) FROM returns`)
		if c != credits || u != used || o != owed {
			t.Errorf("%d credits, %d used of the test pool, %d owed; want %d, %d, %d", c, u, o, credits, used, owed)
		}
	}
	state(98, 3, 2)
	if err := holder.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.tasks(); err != nil {
			t.Error(err)
		}
		state(99, 2, 0)
	}
}

// TestReceiptsForBinds: a final message that was submitted over SMPP has a receipt if it asked for one of that kind.
func TestReceiptsForBinds(t *testing.T) {
	want := map[uint8][2]bool{0: {}, core.ReceiptAlways: {true, true}, core.ReceiptOfFailure: {false, true},
		core.ReceiptOfSuccess: {true, false}}
	for registered, of := range want {
		for i, status := range []sms.Status{sms.Sent, sms.Failed} {
			m := messages.Settled{SMPPAccount: 7, SMPPBind: 8, Registered: registered, Status: status, Number: "+25779000001",
				Sender: "ACME", Reason: "UNDELIV 001"}
			got := core.ReceiptsFor([]messages.Settled{m})
			if (len(got) == 1) != of[i] {
				t.Errorf("registered_delivery %d, %v: %d receipts", registered, status, len(got))
			}
			if len(got) == 1 && (got[0].Account != 7 || got[0].Bind != 8 || *got[0].Sent != (status == sms.Sent)) {
				t.Errorf("%+v", got[0])
			}
		}
	}
}
