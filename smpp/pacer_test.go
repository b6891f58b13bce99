package smpp

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// busiest returns the most events in any window of one second.
func busiest(at []time.Time) int {
	most, first := 0, 0
	for i := range at {
		for at[i].Sub(at[first]) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// The rate is never exceeded, however late timers and writes are.
func TestPacerNeverExceedsTheRate(t *testing.T) {
	t.Parallel()
	for _, tps := range []float64{1, 3, 10, 100, 333, 1000, 2000, 5000} {
		p := newPacer(tps)
		now := time.Unix(0, 0)
		random := rand.New(rand.NewPCG(1, uint64(tps)))
		var at []time.Time
		for now.Before(time.Unix(20, 0)) {
			var taken int
			var wait time.Duration
			for {
				if wait = p.take(now); wait > 0 {
					break
				}
				taken++
			}
			if taken > 0 {
				slow := time.Duration(random.Int64N(int64(200 * time.Microsecond)))
				if random.IntN(200) == 0 {
					slow = time.Duration(random.Int64N(int64(2 * time.Second)))
				}
				end := now.Add(slow)
				for range taken { // anywhere within the write
					at = append(at, end)
				}
				now = end
				p.written(now)
			}
			if random.IntN(3) == 0 { // another submit interrupts the wait
				now = now.Add(time.Duration(random.Int64N(int64(wait))))
				continue
			}
			now = now.Add(wait + time.Duration(random.Int64N(int64(2*time.Millisecond))))
			if random.IntN(500) == 0 {
				now = now.Add(time.Duration(random.Int64N(int64(3 * time.Second)))) // idle
			}
		}
		if most := busiest(at); most > int(tps) {
			t.Errorf("tps %v: %d in one second", tps, most)
		}
	}
}

// With timers up to 2 ms late, the rate is within 2 % of tps.
func TestPacerHoldsTheRate(t *testing.T) {
	t.Parallel()
	for _, tps := range []float64{1, 10, 100, 1000, 2000, 5000} {
		p := newPacer(tps)
		now := time.Unix(0, 0)
		random := rand.New(rand.NewPCG(2, uint64(tps)))
		taken := 0
		for now.Before(time.Unix(20, 0)) {
			wait := p.take(now)
			if wait == 0 {
				taken++
				p.written(now)
				continue
			}
			now = now.Add(wait + time.Duration(random.Int64N(int64(2*time.Millisecond))))
		}
		if rate := float64(taken) / 20; rate < 0.98*tps || rate > tps+1 {
			t.Errorf("tps %v: %v a second", tps, rate)
		}
	}
}

func TestPacerRates(t *testing.T) {
	p := newPacer(0)
	now := time.Unix(1000, 0)
	for range 1000 {
		if p.take(now) != 0 {
			t.Fatal("unpaced waits")
		}
	}
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if p.set(bad) {
			t.Errorf("%v was taken for a rate", bad)
		}
	}
	if !p.set(0.5) || p.rate() != 0.5 {
		t.Error("0.5 was refused")
	}
	if p.take(now) == 0 {
		t.Error("a new pace does not reckon with what was just sent")
	}
	if p.set(1e-300); p.take(now) > 25*time.Hour {
		t.Error("overflow")
	}
}

// Over the whole link in synthetic time: the carrier sees at most TPS in any second,
// evenly spread, and a change of rate applies at once.
func TestLinkPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := pipeBind(t, func(o *Options) { o.TPS, o.Window = 50, 1000 })
		stop := start(t, b)
		p := c.accept()
		p.acceptBind()
		waitBound(t, b)
		var mu sync.Mutex
		var times []time.Time
		arrived := func() []time.Time { // since the last call
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			at := times
			times = nil
			return at
		}
		serving := p.serve(func(got packet) {
			if got.command == rawSubmit {
				mu.Lock()
				times = append(times, time.Now())
				mu.Unlock()
				p.accepted(got, "1")
			}
			p.polite(got)
		})
		ctx, cancel := context.WithCancel(context.Background())
		submitting := make(chan struct{})
		go func() {
			defer close(submitting)
			for b.Submit(ctx, sample(), func(Result) {}) == nil {
			}
		}()
		time.Sleep(10 * time.Second)
		at := arrived()
		if n, most := len(at), busiest(at); most > 50 || n < 490 || n > 501 {
			t.Errorf("%d in 10 s, at most %d in a second", n, most)
		}
		for i := range len(at) - 1 {
			if gap := at[i+1].Sub(at[i]); gap < 15*time.Millisecond || gap > 25*time.Millisecond {
				t.Fatalf("gap %d is %s", i, gap)
			}
		}
		b.SetTPS(10)
		time.Sleep(10 * time.Second)
		if n := len(arrived()); n < 97 || n > 101 {
			t.Errorf("%d in 10 s at 10 a second", n)
		}
		cancel()
		<-submitting
		b.SetTPS(0)
		began := time.Now()
		arrived()
		for range 2000 {
			if err := b.Submit(context.Background(), sample(), func(Result) {}); err != nil {
				t.Fatal(err)
			}
		}
		if n, d := len(arrived()), time.Since(began); n < 2000 || d > time.Second {
			t.Errorf("unpaced: %d in %s", n, d)
		}
		stop()
		serving.Wait()
	})
}
