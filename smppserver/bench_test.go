package smppserver_test

import (
	"context"
	"sync"
	"testing"

	"intumwa/accounts/keys"
	"intumwa/smpp"
)

// BenchmarkSubmit measures accepted submit_sm over four binds with a window of 100, each message committed before its
// answer.
func BenchmarkSubmit(b *testing.B) {
	w := newBank(b, int64(b.N)+1000, keys.SMPPLimits{Window: 100, TPS: 10_000})
	p := w.start()
	var clients []*client
	for range 4 {
		clients = append(clients, w.bound(p, func(o *smpp.Options) { o.Window = 100 }))
	}
	w.exec(`UPDATE api_tokens SET tps = 10000`)
	var answered sync.WaitGroup
	refused := 0
	var mu sync.Mutex
	b.ResetTimer()
	var senders sync.WaitGroup
	for i, c := range clients {
		senders.Go(func() {
			for n := i; n < b.N; n += len(clients) {
				m := smpp.Submit{Source: "ACME", Dest: "25779123456", RegisteredDelivery: 1, ShortMessage: []byte("Amahoro")}
				answered.Add(1)
				if err := c.Submit(context.Background(), &m, func(r smpp.Result) {
					if r.Outcome != smpp.Accepted {
						mu.Lock()
						refused++
						mu.Unlock()
					}
					answered.Done()
				}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	senders.Wait()
	answered.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64(refused), "refused")
}
