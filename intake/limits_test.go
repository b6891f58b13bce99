package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"intumwa/accounts/companies"
	"intumwa/billing"
	"intumwa/internal/testenv"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/sms"
)

// limited returns a process that counts, in a district whose company has these limits.
func (d *district) limited(t testing.TB, limits companies.LimitsChange) *Intake {
	t.Helper()
	d.limit(t, limits)
	in := d.process(t)
	rdb, prefix := testenv.Redis(t)
	in.opts.Repeats = throttle.NewRepeats(rdb, throttle.RepeatOptions{Prefix: prefix, Timeout: 10 * time.Second})
	return in
}

// limit changes the limits of the district's company.
func (d *district) limit(t testing.TB, change companies.LimitsChange) {
	t.Helper()
	_, err := d.companies.SetCompany(t.Context(), 1, companies.CompanyChange{Limits: change})
	if err == nil {
		d.principal, err = d.holders.Fresh(t.Context(), d.principal)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func bulk(items ...Recipient) Batch { return Batch{Sender: "ACME", Recipients: items} }

const ann, ben = sms.Number("+25779000001"), sms.Number("+25779000002")

// refusal checks the text of a refusal; "" means none.
func refusal(t *testing.T, what string, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if r, refused := errors.AsType[sms.Refusal](err); got != want || refused != (want != "") ||
		(refused && r.Text != want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestLimitsOnRepeats(t *testing.T) {
	d := newDistrict(t, 100)
	in := d.limited(t, companies.LimitsChange{RepeatSeconds: companies.Limit(30)})
	batch := func(items ...Recipient) error {
		_, err := in.SendBatch(t.Context(), d.principal, bulk(items...))
		return err
	}
	const soon = "Recipient #%d: the same message can be sent to this phone number only once in 30 seconds."
	refusal(t, "the first", batch(Recipient{Number: ann, Message: "a"}, Recipient{Number: ben, Message: "a"}), "")
	refusal(t, "one again", batch(Recipient{Number: ann, Message: "b"}, Recipient{Number: ben, Message: "a"}),
		fmt.Sprintf(soon, 2))
	refusal(t, "nothing of that counted", batch(Recipient{Number: ann, Message: "b"}), "")
	refusal(t, "twice in one", batch(Recipient{Number: ann, Message: "c"}, Recipient{Number: ben, Message: "c"},
		Recipient{Number: ann, Message: "c"}), fmt.Sprintf(soon, 3))
	template := sms.ParseTemplate("{{x}}")
	rendered := "b"
	_, err := in.SendBatch(t.Context(), d.principal, Batch{Sender: "ACME", Template: template,
		Recipients: []Recipient{{Number: ann, Variables: map[string]*string{"x": &rendered}}}})
	refusal(t, "a template that renders to it", err, fmt.Sprintf(soon, 1))
	d.checkLedger(t, 97, 3)

	d.limit(t, companies.LimitsChange{RepeatSeconds: companies.Limit(0), RepeatsADay: companies.Limit(1)})
	single := func(text string) error {
		_, err := in.Send(t.Context(), d.principal, Single{Number: ann, Sender: "ACME", Message: text})
		return err
	}
	refusal(t, "a single", single("d"), "")
	refusal(t, "a single that counts", single("d"), "The same message can be sent to this phone number only once a day.")
	refusal(t, "in a batch", batch(Recipient{Number: ben, Message: "d"}, Recipient{Number: ann, Message: "d"}),
		"Recipient #2: the same message can be sent to this phone number only once a day.")
	d.limit(t, companies.LimitsChange{RepeatsADay: companies.Limit(0), NumberADay: companies.Limit(5)})
	refusal(t, "a fifth", batch(Recipient{Number: "+25779000003", Message: "1"},
		Recipient{Number: "+25779000003", Message: "2"}, Recipient{Number: "+25779000003", Message: "3"},
		Recipient{Number: "+25779000003", Message: "4"}, Recipient{Number: "+25779000003", Message: "5"}), "")
	refusal(t, "a sixth", batch(Recipient{Number: "+25779000003", Message: "6"}),
		"Recipient #1: at most 5 messages a day can be sent to this phone number.")
}

// TestLimitsOnParts: two parts of a long message may have one text; the message again is a repeat.
func TestLimitsOnParts(t *testing.T) {
	d := newDistrict(t, 100)
	in := d.limited(t, companies.LimitsChange{RepeatSeconds: companies.Limit(30)})
	part := func(reference uint16, number uint8) error {
		_, err := in.Submit(t.Context(), d.principal, Submit{Number: ann, Sender: "ACME", Message: "xxx",
			Origin: messages.Origin{Form: messages.Form{Part: &sms.Part{Reference: reference, Total: 2, Number: number}}}})
		return err
	}
	refusal(t, "part 1", part(1, 1), "")
	refusal(t, "part 2", part(1, 2), "")
	refusal(t, "part 1 again", part(2, 1), "The same message can be sent to this phone number only once in 30 seconds.")
}

// TestLimitsCountAcceptedRequests: neither refused nor repeated requests count.
func TestLimitsCountAcceptedRequests(t *testing.T) {
	d := newDistrict(t, 2)
	in := d.limited(t, companies.LimitsChange{RepeatSeconds: companies.Limit(3600)})
	request := bulk(Recipient{Number: ann, Message: "a"}, Recipient{Number: ben, Message: "a"},
		Recipient{Number: "+25779000003", Message: "a"})
	_, err := in.SendBatch(t.Context(), d.principal, request)
	refusal(t, "cannot be paid", err, "Insufficient SMS credits. This batch requires 3 credits.")
	request.Recipients, request.Key = request.Recipients[:2], &Key{Name: "k", Request: [32]byte{1}}
	first, err := in.SendBatch(t.Context(), d.principal, request)
	refusal(t, "can be paid", err, "")
	for _, process := range []*Intake{in, in} {
		again, err := process.SendBatch(t.Context(), d.principal, request)
		if err != nil || !again.Replayed || string(again.Body) != string(first.Body) {
			t.Errorf("again: %+v, %v", again, err)
		}
	}
	request.Key = nil
	_, err = in.SendBatch(t.Context(), d.principal, request)
	refusal(t, "another request", err, "Recipient #1: the same message can be sent to this phone number only "+
		"once in 1 hour.")
	d.checkLedger(t, 0, 2)
}

// TestLimitsAfterLostCommit: a request that may be recorded counts as sent; one that is known not to be does not.
func TestLimitsAfterLostCommit(t *testing.T) {
	d := newDistrict(t, 2)
	rdb, prefix := testenv.Redis(t)
	d.limit(t, companies.LimitsChange{RepeatSeconds: companies.Limit(3600)})
	in := New(d.pool, d.holders, d.testNumbers, nil, nil, d.process(t).table.Load(),
		Options{Repeats: throttle.NewRepeats(rdb, throttle.RepeatOptions{Prefix: prefix, Timeout: 10 * time.Second})})
	send := func(text string, outcome error) error {
		answered := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // plays the committer
			defer close(answered)
			select {
			case r := <-in.committer.requests:
				respond([]*request{r}, outcome)
			case <-ctx.Done():
			}
		}()
		_, err := in.SendBatch(t.Context(), d.principal, bulk(Recipient{Number: ann, Message: text}))
		cancel()
		<-answered
		return err
	}
	for range 2 {
		if err := send("known", ErrUnavailable); !errors.Is(err, ErrUnavailable) {
			t.Errorf("certainly not recorded: %v", err)
		}
	}
	if err := send("unknown", ErrOutcomeUnknown); !errors.Is(err, ErrUnavailable) {
		t.Errorf("in doubt: %v", err)
	}
	refusal(t, "in doubt, again", send("unknown", ErrOutcomeUnknown),
		"Recipient #1: the same message can be sent to this phone number only once in 1 hour.")
}

// TestLimitsSameKeyElsewhere: a repetition at another process gets 409 while the first request waits for its commit. If
// the first process is dead, the repetition runs, and the first gets its response. Together they count once.
func TestLimitsSameKeyElsewhere(t *testing.T) {
	d := newDistrict(t, 100)
	two := d.limited(t, companies.LimitsChange{RepeatSeconds: companies.Limit(3600), RepeatsADay: companies.Limit(2)})
	one := New(d.pool, d.holders, d.testNumbers, two.messages, two.committer.queue, two.table.Load(),
		Options{Repeats: two.opts.Repeats})
	repeated := bulk(Recipient{Number: ann, Message: "a"})
	repeated.Key = &Key{Name: "k", Request: [32]byte{1}}
	type outcome struct {
		Answer
		err error
	}
	answered := make(chan outcome, 1)
	go func() {
		answer, err := one.SendBatch(t.Context(), d.principal, repeated)
		answered <- outcome{answer, err}
	}()
	first := <-one.committer.requests // counted; its committer has not begun

	tx, err := d.pool.Begin(t.Context()) // as the committer does
	if err == nil {
		_, err = tx.Exec(t.Context(), `INSERT INTO idempotency_keys (user_id, key, request) VALUES ($1, $2, $3)`,
			d.principal.UserID, "k", repeated.Key.Request[:])
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.SendBatch(t.Context(), d.principal, repeated); !errors.Is(err, ErrKeyInUse) {
		t.Errorf("while the first is under way: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := two.SendBatch(t.Context(), d.principal, repeated)
	if err != nil || second.Replayed {
		t.Errorf("in the place of the first: %+v, %v", second, err)
	}
	tried, err := one.committer.try(t.Context(), []*request{first}, time.Second)
	respond(tried, err)
	if late := <-answered; late.err != nil || !late.Replayed || string(late.Body) != string(second.Body) {
		t.Errorf("the first: %+v, %v", late, late.err)
	}
	repeated.Key = nil
	_, err = two.SendBatch(t.Context(), d.principal, repeated)
	refusal(t, "another request", err, "Recipient #1: the same message can be sent to this phone number only "+
		"once in 1 hour.")
	d.limit(t, companies.LimitsChange{RepeatSeconds: companies.Limit(0)})
	_, err = two.SendBatch(t.Context(), d.principal, repeated)
	refusal(t, "the second of the day", err, "")
	_, err = two.SendBatch(t.Context(), d.principal, repeated)
	refusal(t, "the third of the day", err, "Recipient #1: the same message can be sent to this phone number at most 2 "+
		"times a day.")
	d.checkLedger(t, 98, 2)
}

// TestLimitsOfACompany: changed limits apply at once.
func TestLimitsOfACompany(t *testing.T) {
	d := newDistrict(t, 1000)
	in := d.limited(t, companies.LimitsChange{RepeatSeconds: companies.Limit(3600), CreditsADay: companies.Limit(3)})
	number := 0
	send := func(n int) error {
		b := bulk()
		for range n {
			b.Recipients = append(b.Recipients, Recipient{Number: sms.Number(fmt.Sprintf("+257791%05d", number)), Message: "x"})
			number++
		}
		_, err := in.SendBatch(t.Context(), d.principal, b)
		return err
	}
	refusal(t, "over the cap", send(4), "Daily spending limit exceeded. This batch requires 4 credits; 3 of 3 are "+
		"left today.")
	refusal(t, "within", send(2), "")
	d.limit(t, companies.LimitsChange{CreditsADay: companies.Limit(5), RepeatSeconds: companies.Limit(0)})
	refusal(t, "within another", send(1), "")
	refusal(t, "over it", send(3), "Daily spending limit exceeded. This batch requires 3 credits; 2 of 5 are left today.")
	d.limit(t, companies.LimitsChange{CreditsADay: companies.Limit(0)})
	refusal(t, "without any", send(10), "")
}

// TestCapOverProcesses: concurrent sends and batches of two processes never take more than the day's credits, and
// refused ones take nothing.
func TestCapOverProcesses(t *testing.T) {
	d := newDistrict(t, 10_000)
	const most = 150
	processes := []*Intake{d.limited(t, companies.LimitsChange{CreditsADay: companies.Limit(most)}),
		d.limited(t, companies.LimitsChange{CreditsADay: companies.Limit(most)})}
	var wg sync.WaitGroup
	var accepted atomic.Int64
	for i := range 300 {
		wg.Go(func() {
			in := processes[i%2]
			var err error
			n := 1
			if i%3 == 0 {
				n = i%4 + 2
				_, err = in.SendBatch(t.Context(), d.principal, bulk().of(n))
			} else {
				_, err = in.Send(t.Context(), d.principal, Single{Number: ann, Sender: "ACME", Message: "x"})
			}
			r, refused := errors.AsType[sms.Refusal](err)
			switch {
			case err == nil:
				accepted.Add(int64(n))
			case !refused || r.Reason != "daily_cap":
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	if accepted.Load() != most {
		t.Errorf("%d credits in a day of %d", accepted.Load(), most)
	}
	d.checkLedger(t, 10_000-most, most)
	if spent, err := billing.New(d.pool).SpentToday(t.Context(), 1); err != nil || spent != most {
		t.Errorf("spent %d, %v", spent, err)
	}
}

// of fills a batch with n messages of one segment.
func (b Batch) of(n int) Batch {
	for i := range n {
		b.Recipients = append(b.Recipients, Recipient{Number: sms.Number(fmt.Sprintf("+257791%05d", i)), Message: "x"})
	}
	return b
}

func TestSpell(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Second: "1 second", 30 * time.Second: "30 seconds",
		90 * time.Second: "90 seconds",
		time.Minute:      "1 minute", 2 * time.Minute: "2 minutes", time.Hour: "1 hour", 24 * time.Hour: "24 hours"} {
		if got := spell(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
