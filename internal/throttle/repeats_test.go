package throttle_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"intumwa/internal/testenv"
	"intumwa/internal/throttle"
)

func to(number, text string) throttle.Sending { return throttle.Sending{Number: number, Text: text} }

// counting counts messages of company 1 and returns the outcome.
type counting struct {
	testing.TB
	*throttle.Repeats
	throttle.RepeatLimits
}

func (c counting) try(want throttle.Repeat, at int, messages ...throttle.Sending) throttle.Counted {
	c.Helper()
	counted, first, reached := c.Count(c.Context(), 1, c.RepeatLimits, "", messages)
	if reached != want || first != at {
		c.Errorf("%v: limit %d at %d, want %d at %d", messages, reached, first, want, at)
	}
	return counted
}

func TestRepeatsADay(t *testing.T) {
	client, prefix := testenv.Redis(t)
	c := counting{t, throttle.NewRepeats(client, throttle.RepeatOptions{Prefix: prefix, Timeout: patient}),
		throttle.RepeatLimits{Texts: 2, Messages: 4}}
	const ann, ben = "+25779000001", "+25779000002"
	c.try(throttle.NoRepeat, 0, to(ann, "a"), to(ben, "a"))
	c.try(throttle.NoRepeat, 0, to(ann, "a"))
	c.try(throttle.TooManyTexts, 2, to(ben, "a"), to(ben, "b"), to(ann, "a")) // none of them counts
	c.try(throttle.NoRepeat, 0, to(ben, "a"), to(ann, "b"))
	c.try(throttle.TooManyTexts, 1, to(ann, "c"), to(ben, "a"))
	c.try(throttle.NoRepeat, 0, to(ann, "d"))
	c.try(throttle.TooManyMessages, 0, to(ann, "e"))
	c.try(throttle.TooManyMessages, 2, to(ben, "f"), to(ben, "g"), to(ben, "h")) // the earlier ones of the call count
	if _, _, reached := c.Count(t.Context(), 2, c.RepeatLimits, "",
		[]throttle.Sending{to(ann, "a")}); reached != throttle.NoRepeat {
		t.Errorf("another company: %d", reached)
	}
}

func TestRepeatsInterval(t *testing.T) {
	client, prefix := testenv.Redis(t)
	limits := throttle.RepeatLimits{Interval: time.Hour}
	c := counting{t, throttle.NewRepeats(client, throttle.RepeatOptions{Prefix: prefix, Timeout: patient}), limits}
	c.try(throttle.TooSoon, 2, to("1", "a"), to("2", "a"), to("1", "a")) // twice in one batch
	first := c.try(throttle.NoRepeat, 0, to("1", "a"), to("2", "a"))
	c.try(throttle.TooSoon, 1, to("3", "a"), to("2", "a"))
	c.try(throttle.NoRepeat, 0, to("1", "b"), to("12", "a"))
	first.Undo(t.Context())
	c.try(throttle.NoRepeat, 0, to("2", "a"), to("3", "a"))

	short := counting{t, c.Repeats, throttle.RepeatLimits{Interval: time.Millisecond}}
	short.try(throttle.NoRepeat, 0, to("9", "a"))
	for deadline := time.Now().Add(patient); ; { // the time passes
		if _, _, reached := c.Count(t.Context(), 1, short.RepeatLimits, "",
			[]throttle.Sending{to("9", "a")}); reached == throttle.NoRepeat {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the interval does not end")
		}
	}
}

// TestRepeatsOfARequest: a named request is counted once over two instances until it is
// undone; another request, another company's, or one without a name is counted.
func TestRepeatsOfARequest(t *testing.T) {
	client, prefix := testenv.Redis(t)
	now := time.Date(2026, 3, 1, 21, 59, 0, 0, time.UTC) // a minute to midnight in Bujumbura
	options := throttle.RepeatOptions{Prefix: prefix, Timeout: patient, Now: func() time.Time { return now }}
	one, two := throttle.NewRepeats(client, options), throttle.NewRepeats(client, options)
	limits := throttle.RepeatLimits{Interval: time.Hour, Messages: 2}
	count := func(r *throttle.Repeats, company int64, request string, want throttle.Repeat) throttle.Counted {
		t.Helper()
		counted, _, reached := r.Count(t.Context(), company, limits, request, []throttle.Sending{to("1", "a")})
		if reached != want {
			t.Errorf("%q of company %d: limit %d, want %d", request, company, reached, want)
		}
		return counted
	}
	first := count(one, 1, "key 1", throttle.NoRepeat)
	for _, at := range []time.Duration{0, 2 * time.Minute} { // and over midnight
		now = now.Add(at)
		for _, r := range []*throttle.Repeats{one, two} {
			count(r, 1, "key 1", throttle.NoRepeat).Undo(t.Context()) // undoes nothing
			count(r, 1, "key 2", throttle.TooSoon)
			count(r, 1, "", throttle.TooSoon)
		}
	}
	count(two, 2, "key 1", throttle.NoRepeat)
	for _, key := range client.Keys(t.Context(), prefix+":*").Val() {
		if life := client.TTL(t.Context(), key).Val(); life <= 0 || strings.Contains(key, "key") ||
			strings.Contains(key, ":request:") && life > 15*time.Minute {
			t.Errorf("%s lives for %v", key, life)
		}
	}
	first.Undo(t.Context())
	count(two, 1, "key 2", throttle.NoRepeat).Undo(t.Context())
	count(one, 1, "key 1", throttle.NoRepeat) // counted as new
	count(one, 1, "", throttle.TooSoon)
}

// TestRepeatsOverMidnight: the counts of a day end at midnight, the interval does not.
func TestRepeatsOverMidnight(t *testing.T) {
	client, prefix := testenv.Redis(t)
	now := time.Date(2026, 3, 1, 21, 59, 0, 0, time.UTC) // a minute to midnight in Bujumbura
	options := throttle.RepeatOptions{Prefix: prefix, Timeout: patient, Now: func() time.Time { return now }}
	c := counting{t, throttle.NewRepeats(client, options), throttle.RepeatLimits{Interval: 10 * time.Minute, Texts: 1}}
	c.try(throttle.NoRepeat, 0, to("1", "a"))
	now = now.Add(2 * time.Minute)
	c.try(throttle.TooSoon, 0, to("1", "a"))
	c.Interval = 0
	c.try(throttle.NoRepeat, 0, to("1", "a"))
	c.try(throttle.TooManyTexts, 0, to("1", "a"))
	now = now.Add(24 * time.Hour)
	c.try(throttle.NoRepeat, 0, to("1", "a"))
}

// TestRepeatsAreKept: keys expire and contain neither numbers nor texts; another
// program's values refuse no client.
func TestRepeatsAreKept(t *testing.T) {
	client, prefix := testenv.Redis(t)
	c := counting{t, throttle.NewRepeats(client, throttle.RepeatOptions{Prefix: prefix, Timeout: patient,
		Key: []byte("k")}),
		throttle.RepeatLimits{Interval: time.Hour, Texts: 3, Messages: 5}}
	const number, text = "+25779123456", "Votre code est 123456"
	c.try(throttle.NoRepeat, 0, to(number, text))
	keys := client.Keys(t.Context(), prefix+":*").Val()
	if len(keys) != 3 {
		t.Fatalf("keys %q", keys)
	}
	for _, key := range keys {
		if life := client.TTL(t.Context(), key).Val(); !strings.HasPrefix(key, prefix+":repeats:{1}:") || life <= 0 ||
			life > 25*time.Hour {
			t.Errorf("%s lives for %v", key, life)
		}
		for _, part := range []string{number, number[1:], "79123456", text, "123456"} {
			if strings.Contains(key, part) {
				t.Errorf("%q is in %q", part, key)
			}
		}
		if err := client.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.LPush(t.Context(), key, "x").Err(); err != nil { // another program's
			t.Fatal(err)
		}
	}
	counted := c.try(throttle.NoRepeat, 0, to(number, text))
	c.try(throttle.TooSoon, 0, to(number, text))
	counted.Undo(t.Context())
	if n := client.Exists(t.Context(), keys...).Val(); n != 0 {
		t.Errorf("nothing is counted, and %d keys are there", n)
	}
}

func unenforced(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "intumwa_limits_unenforced_total" {
		t.Fatalf("%v, %v", families, err)
	}
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

// TestConcurrentRepeats: of many equal messages at once, over two instances, one passes.
func TestConcurrentRepeats(t *testing.T) {
	client, prefix := testenv.Redis(t)
	options := throttle.RepeatOptions{Prefix: prefix, Timeout: patient}
	instances := []*throttle.Repeats{throttle.NewRepeats(client, options), throttle.NewRepeats(client, options)}
	var wg sync.WaitGroup
	var passed atomic.Int64
	for i := range 100 {
		wg.Go(func() {
			messages := []throttle.Sending{to(fmt.Sprint(i), "a"), to("same", "a")}
			if _, _, reached := instances[i%2].Count(t.Context(), 1, throttle.RepeatLimits{Interval: time.Hour}, "",
				messages); reached == throttle.NoRepeat {
				passed.Add(1)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 1 {
		t.Errorf("%d passed", passed.Load())
	}
}

// TestRepeatsWithoutRedis: messages pass without delay, and a metric counts them.
func TestRepeatsWithoutRedis(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer func() { _ = client.Close() }()
	registry := prometheus.NewRegistry()
	c := counting{t, throttle.NewRepeats(client, throttle.RepeatOptions{Prefix: "x", Metrics: registry}),
		throttle.RepeatLimits{Interval: time.Hour}}
	start := time.Now()
	for range 1000 {
		c.try(throttle.NoRepeat, 0, to("1", "a")).Undo(t.Context())
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("%v", took)
	}
	if n := unenforced(t, registry); n != 1000 {
		t.Errorf("%v passed uncounted", n)
	}
}
