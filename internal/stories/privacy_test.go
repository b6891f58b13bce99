package stories

import (
	"strings"
	"testing"

	"intumwa/tools/carriersim"
)

// The gateway is killed while a company's messages are settled whose texts are not to be kept: every one arrives with its
// text, and when all are final no text is left. Then one number is erased, and nobody finds it any more.
func TestTextsGoWithTheVerdict(t *testing.T) {
	t.Parallel()
	const messages = 900
	w := play(t, scene{carriers: []carrier{steady()}})
	shop, other := w.company("Isoko", 100_000), w.company("Ikawa", 1000)
	var result map[string]any
	w.orders(&result, "", "company", "set", "--id", shop.number(), "--bodies", "final")
	kept := other.sends(w.number(), "Amahoro mwese")
	l := shop.sendsMany(&load{messages: messages, keyed: true})
	for _, share := range []int{messages / 3, 2 * messages / 3} {
		l.reaches(share)
		w.gateway.kill()
		w.gateway.start()
	}
	l.finishes()
	w.drains()
	w.settles(settledWithin)
	texts := map[string]bool{}
	var last carriersim.Message
	for _, m := range w.lumitel.Messages() {
		if m.Text == "" {
			t.Errorf("an empty message arrived at %s", m.Destination)
		}
		if strings.HasPrefix(m.Text, l.word) {
			texts[m.Text], last = true, m
		}
	}
	if len(texts) != messages {
		t.Errorf("%d of %d texts arrived", len(texts), messages)
	}
	w.eventually(settledWithin, "no text of the company is left", func() bool {
		return ask[int](w, `SELECT count(*) FROM messages WHERE company_id = `+shop.number()+` AND body <> ''`) == 0
	})
	w.becomes(kept.ID, "sent")
	if n := ask[int](w, `SELECT count(*) FROM messages WHERE body = 'Amahoro mwese'`); n != 1 {
		t.Error("another company's text is gone")
	}

	number := "+" + strings.TrimPrefix(last.Destination, "+")
	var erased struct{ Messages, Pending int64 }
	w.eventually(settledWithin, "the number is erased", func() bool {
		return w.admin(&erased, "", "number", "erase", "--number", number, "--reason", "request 17") == nil
	})
	if n := ask[int](w, `SELECT (SELECT count(*) FROM messages WHERE phone_number = '`+number+`') + (SELECT count(*) FROM webhook_deliveries WHERE phone_number = '`+number+`')`); n != 0 {
		t.Errorf("%d rows have the number", n)
	}
	w.audited()
}
