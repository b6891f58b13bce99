package dispatcher

import (
	"encoding/json"
	"strings"
	"testing"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/settling"
	"intumwa/smpp"
	"intumwa/webhooks"
)

// TestFinishedBatchIsTold: a company that asks for batch.finished gets it once for each batch, with its counts, by its
// endpoint and for its consumers; one that does not ask pays for nothing and gets nothing.
func TestFinishedBatchIsTold(t *testing.T) {
	b := newBench(t)
	b.exec(`INSERT INTO batches (ulid, company_id, user_id, kind, sender, recipients_count, item_count)
		VALUES (gen_random_uuid(), 1, 1, 'bulk', 'ACME', 2, 2)`)
	first, second := b.begun(1), b.begun(1)
	b.exec(`UPDATE messages SET batch_id = 1`)
	tell := func(want int) {
		t.Helper()
		for range 2 {
			if err := b.d.housekeeping.TellFinished(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := b.count(`SELECT count(*) FROM webhook_deliveries WHERE id % 8 = 6`); n != want {
			t.Errorf("%d events of the endpoint, want %d", n, want)
		}
	}
	tell(0)
	if n := b.count(`SELECT count(*) FROM batch_watches`); n != 0 {
		t.Errorf("%d batches are watched, and nobody asks", n)
	}
	if _, err := b.d.core.Webhooks.SetEndpoint(t.Context(), 1,
		webhooks.Setting{Events: &[]string{webhooks.BatchFinished}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.d.core.Webhooks.Pull(t.Context(), 1, webhooks.Place{}, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.d.core.Webhooks.SetPulled(t.Context(), 1, []string{webhooks.BatchFinished}); err != nil {
		t.Fatal(err)
	}
	b.settle(settling.Settlement{Results: []core.Result{ended(smpp.Rejected, smpp.StatusInvDstAddr, nil)(first, 1)}})
	tell(0)
	b.settle(settling.Settlement{Results: []core.Result{ended(smpp.Rejected, smpp.StatusInvDstAddr, nil)(second, 1)}})
	tell(1)
	page, _, err := b.d.core.Webhooks.Pull(t.Context(), 1, webhooks.Place{}, 10)
	if err != nil || len(page) != 3 {
		t.Fatalf("%d events to fetch, %v", len(page), err)
	}
	last := page[2]
	if !json.Valid(last.Body) || !strings.Contains(string(last.Body), `"event":"batch.finished"`) ||
		!strings.HasSuffix(string(last.Body), `,"recipients_count":2,"sent":0,"failed":2,"cancelled":0}}`) {
		t.Errorf("%s", last.Body)
	}
}
