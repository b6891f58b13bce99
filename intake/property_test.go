package intake

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"intumwa/sms"
)

// texts generates texts of every size and alphabet.
func texts() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		unit := rapid.SampledFrom([]string{"a", "é", "€", "ж", "😀", "[", "\n"}).Draw(t, "character")
		return strings.Repeat(unit, rapid.IntRange(1, 600).Draw(t, "length")) +
			rapid.SampledFrom([]string{"", "x", "ç"}).Draw(t, "end")
	})
}

func numbers() *rapid.Generator[sms.Number] {
	return rapid.SampledFrom([]sms.Number{"+25779123456", "+25761234567", "+25771000001"})
}

// Each message is charged as recorded, and cut as the dispatcher cuts it the recorded text has as many segments as were
// charged, which together are the requested text.
func TestChargedAsCut(t *testing.T) {
	d := newDistrict(t, 1_000_000)
	in := d.process(t)
	credits := int64(1_000_000)
	rapid.Check(t, func(rt *rapid.T) {
		var req Batch
		req.Sender = "ACME"
		want := 0
		for range rapid.IntRange(1, 12).Draw(rt, "messages") {
			text := texts().Draw(rt, "text")
			req.Recipients = append(req.Recipients, Recipient{Number: numbers().Draw(rt, "number"), Message: text})
			encoding, payload := sms.Encode(text)
			want += len(sms.SplitEncoded(encoding, payload, false).Segments)
		}
		answer, err := in.SendBatch(t.Context(), d.principal, req)
		if err != nil {
			rt.Fatal(err)
		}
		var got BatchAccepted
		if err := json.Unmarshal(answer.Body, &got); err != nil {
			rt.Fatal(err)
		}
		credits -= int64(want)
		if got.ItemCount != want || got.RemainingItems != credits || got.RecipientsCount != len(req.Recipients) {
			rt.Fatalf("%+v, not %d segments and %d credits", got, want, credits)
		}
		var messages, segments, batch, outbox int
		err = d.pool.QueryRow(t.Context(), `SELECT count(*), sum(m.segments), max(b.item_count), count(o.message_id)
			FROM batches b JOIN messages m ON m.batch_id = b.id LEFT JOIN outbox o ON o.message_id = m.id
			WHERE b.ulid = $1`, [16]byte(got.BatchID)).Scan(&messages, &segments, &batch, &outbox)
		if err != nil {
			rt.Fatal(err)
		}
		if messages != len(req.Recipients) || segments != want || batch != want || outbox != messages {
			rt.Fatalf("%d messages of %d segments (batch %d), %d waiting; want %d of %d", messages, segments, batch, outbox,
				len(req.Recipients), want)
		}
		var paid int64
		err = d.pool.QueryRow(t.Context(), `SELECT -amount FROM ledger WHERE kind = 'send' AND ref = $1`,
			[16]byte(got.BatchID)).Scan(&paid)
		if err != nil || paid != int64(want) {
			rt.Fatalf("%d credits were taken for %d segments: %v", paid, want, err)
		}
		rows, err := d.pool.Query(t.Context(), `SELECT m.body, m.segments FROM batches b JOIN messages m ON m.batch_id = b.id
			WHERE b.ulid = $1 ORDER BY m.id`, [16]byte(got.BatchID))
		if err != nil {
			rt.Fatal(err)
		}
		recorded, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
			Body     string
			Segments int
		}])
		if err != nil || len(recorded) != len(req.Recipients) {
			rt.Fatalf("%d bodies: %v", len(recorded), err)
		}
		for i, m := range recorded {
			encoding, payload := sms.Encode(m.Body) // as setup.Carrier does
			parts := sms.SplitEncoded(encoding, payload, false).Segments
			text, ok := sms.Decode(encoding.DataCoding(), sms.DefaultGSM7, parts...)
			if !ok || text != req.Recipients[i].Message || len(parts) != m.Segments {
				rt.Fatalf("message %d, charged as %d segments, is cut into %d that read %q, not %q",
					i, m.Segments, len(parts), text, req.Recipients[i].Message)
			}
		}
	})
	var n int64
	if err := d.pool.QueryRow(t.Context(), `SELECT count(*) FROM messages`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	d.checkLedger(t, credits, n)
}

// If one recipient fails, nothing is charged or recorded.
func TestRefusedBatchLeavesNothing(t *testing.T) {
	d := newDistrict(t, 50)
	in := d.process(t)
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Prefixes: []string{"7"}}})
	if err != nil {
		t.Fatal(err)
	}
	in.SetRoutes(routes)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(rt, "recipients")
		bad := rapid.IntRange(0, n-1).Draw(rt, "the bad one")
		one, empty, huge := "x", "", strings.Repeat("ж", 255)
		req := Batch{Sender: "ACME", Template: sms.ParseTemplate(strings.Repeat("{{a}}", 110) + "{{b}}")}
		for range n {
			req.Recipients = append(req.Recipients, Recipient{Number: "+25779123456",
				Variables: map[string]*string{"a": &empty, "b": &one}})
		}
		r := &req.Recipients[bad]
		switch rapid.SampledFrom([]string{"carrier", "variable", "empty", "long", "credits"}).Draw(rt, "how") {
		case "carrier":
			r.Number = "+25761234567"
		case "variable":
			r.Variables = map[string]*string{"a": &one}
		case "empty":
			r.Variables = map[string]*string{"a": nil, "b": &empty}
		case "long":
			r.Variables = map[string]*string{"a": &huge, "b": nil}
		case "credits":
			text := strings.Repeat("ж", 35)
			r.Variables = map[string]*string{"a": &text, "b": nil} // 58 segments
		}
		_, err := in.SendBatch(t.Context(), d.principal, req)
		if _, refused := errors.AsType[sms.Refusal](err); !refused {
			rt.Fatalf("not refused: %v", err)
		}
	})
	d.checkLedger(t, 50, 0)
}

// Many callers spend one balance: it never falls below zero, and the admitted messages are the recorded ones.
func TestManyCallersOneBalance(t *testing.T) {
	d := newDistrict(t, 100)
	processes := []*Intake{d.process(t), d.process(t)}
	var mu sync.Mutex
	var wg sync.WaitGroup
	left := int64(100)
	var accepted int64
	for i := range 120 {
		wg.Go(func() {
			req := Batch{Sender: "ACME"}
			for range i%4 + 1 {
				req.Recipients = append(req.Recipients, Recipient{Number: "+25779123456", Message: "x"})
			}
			_, err := processes[i%2].SendBatch(t.Context(), d.principal, req)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				left -= int64(len(req.Recipients))
				accepted += int64(len(req.Recipients))
			} else if _, refused := errors.AsType[sms.Refusal](err); !refused {
				t.Errorf("neither accepted nor refused: %v", err)
			}
		})
	}
	wg.Wait()
	if left < 0 || left > 3 {
		t.Errorf("%d credits left", left)
	}
	d.checkLedger(t, left, accepted)
}
