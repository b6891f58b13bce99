package stories

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"intumwa/tools/carriersim"
)

// A gateway with debug logs in both formats meets every kind of fault. The end of every
// world searches the logs; this story fills them.
func TestLogsContainNoSecrets(t *testing.T) {
	t.Parallel()
	w := play(t, scene{
		carriers: []carrier{{}, {}, {}},
		config:   tree{"log": tree{"level": "debug"}, "webhooks": tree{"timeout": "1s", "retry_delays": []string{"1s"}}},
		gateways: []tree{{}, {"log": tree{"format": "text"}}},
		// Carriers send garbage here.
		brokenProtocol: true,
		ownPostgres:    true, ownRedis: true,
	})
	// An MO text and its number must not be logged either.
	w.secret("Murakoze cane")
	shop, failing := w.company("Isoko", 1000), w.silentCompany("Inzu", 1000)
	excuse := word()
	w.secret(excuse)
	failing.listens(func(rw http.ResponseWriter, _ *http.Request) {
		http.Error(rw, excuse, http.StatusInternalServerError)
	})
	w.secret(w.inbox.paths()...)

	body := func() string { return "ibanga " + word() }
	for _, breaking := range []int{24, 58} { // half a PDU, and garbage
		shop.tries(w.fated(breaking), body())
	}
	for _, g := range w.gateways {
		// Customers' requests.
		for _, fate := range []int{0, 1, 2, 4, 8, 11, 12, 14, 26, 35, 47, 61, 63} {
			to := w.fated(fate)
			shop.triesAt(g, to, body())
			failing.triesAt(g, to, body())
		}
		for _, text := range []string{body() + strings.Repeat(" ж", 100), strings.Repeat(body(), 50), "\x00" + body()} {
			shop.triesAt(g, w.number(), text)
		}
		key := word()
		w.secret(key)
		shop.triesAt(g, w.number(), body(), "Idempotency-Key", key)
		shop.triesAt(g, w.number(), body(), "Idempotency-Key", key)
		for _, number := range []string{"79123456 " + word(), "+25722000000", "25799123456"} {
			shop.triesAt(g, number, body())
		}
		for _, broken := range []string{`{"phone_number":"` + body(), `[]`, body()} {
			w.secret(broken)
			shop.posts(g, []byte(broken))
		}
		wrong := *shop
		wrong.token = "1|" + strings.Repeat(word(), 4)
		w.secret(wrong.token[2:])
		wrong.triesAt(g, w.number(), body())
		wrong.token = word() + word()
		w.secret(wrong.token)
		wrong.triesAt(g, w.number(), body())
	}
	// Carriers' faults.
	w.carriers[1].Faults(func(f *carriersim.Faults) { f.BindStatus = carriersim.InvalidPassword })
	w.carriers[1].DropAll()
	w.carriers[2].SendRaw([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	// Servers' faults.
	w.redisServer.Kill()
	shop.tries(w.number(), body())
	w.redisServer.Start()
	w.postgresServer.Kill()
	shop.tries(w.number(), body())
	w.postgresServer.Start()
	w.eventually(finalWithin, "the gateway accepts again",
		func() bool { return shop.tries(w.number(), body()).status == http.StatusOK })
	w.settles(settledWithin)

	// The logs have masked numbers.
	for _, g := range w.gateways {
		for _, kind := range []string{"ready", "+25761****"} {
			if !slices.ContainsFunc(w.gateways, func(g *gateway) bool { return bytes.Contains(g.logText(), []byte(kind)) }) {
				t.Errorf("no log contains %q; that of %s ends with:\n%s", kind, g.name, g.logTail())
			}
		}
	}
}
