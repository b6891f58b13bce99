package stories

import (
	"strings"
	"testing"

	"intumwa/tools/carriersim"
)

// TestAnswersSurviveKills: people ask by keyword while two gateways answer, and one after the other is killed. Each
// person gets one answer, and the company pays for it once.
func TestAnswersSurviveKills(t *testing.T) {
	t.Parallel()
	busy(t)
	const people = 300
	kills := chaos(8)
	w := play(t, scene{carriers: []carrier{steady()}, gateways: []tree{{}, {}}})
	shop := w.company("Isoko", 100_000)
	answer := "Riz: 3000 FBu/kg " + word()
	w.orders(&struct{}{}, "", "inbound", "route", "add", "--address", "8080", "--keyword", "PRIX", "--company",
		shop.number(), "--sender", shop.sender, "--answer", answer)

	answered := func() int { return scalar[int](w, `SELECT count(*) FROM inbound_messages WHERE answer = 'sent'`) }
	for kill := range kills {
		for i := range people {
			if err := w.lumitel.SendMO(carriersim.MO{From: strings.TrimPrefix(w.subscriber(kill*people+i), "+"), To: "8080",
				Text: "prix?", SystemID: w.lumitel.account}); err != nil {
				t.Fatal(err)
			}
		}
		w.shrinks("not answered, of a third", onTheWayWithin, func() int { return kill*people + people/3 - answered() })
		g := w.gateways[kill%2]
		g.kill()
		g.start()
	}
	w.shrinks("not answered", settledWithin, func() int { return kills*people - answered() })
	w.drains()
	w.settles(settledWithin)

	got, copies := map[string]bool{}, 0
	for _, m := range w.lumitel.Messages() {
		if m.Text != answer {
			t.Errorf("%q reached %s", m.Text, m.Destination)
		}
		got[m.Destination], copies = true, copies+1+m.Duplicates
	}
	records := shop.records()
	if len(got) != kills*people || len(records) != len(got) || shop.credits() != shop.granted-int64(len(records)) {
		t.Errorf("%d people have an answer, of %d; the company sent %d and has %d credits of %d", len(got), kills*people,
			len(records), shop.credits(), shop.granted)
	}
	if again, most := copies-len(got), window*int(max(w.lumitel.Stats().Binds, 1)-1); again > most {
		t.Errorf("%d answers arrived twice, at most %d may: one window for each lost session", again, most)
	}
	t.Logf("%d answers with %d kills, %d arrived twice", len(got), kills, copies-len(got))
}
