package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/sms"
	"intumwa/verifications"
)

func asked(number string) verifications.Request {
	return verifications.Request{Number: sms.Number(number), Sender: "ACME", Locale: "en", Digits: 6,
		Life: 10 * time.Minute}
}

// verify sends a code and returns the response.
func (d *district) verify(t *testing.T, in *Intake, r verifications.Request) (v Verified) {
	t.Helper()
	answer, err := in.Verify(t.Context(), d.principal, r, nil)
	if err == nil {
		err = json.Unmarshal(answer.Body, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// code returns a verification's code.
func (d *district) code(t *testing.T, id ulid.ULID) string {
	t.Helper()
	var secret otp.Secret
	if err := d.pool.QueryRow(t.Context(), `SELECT secret FROM verifications WHERE ulid = $1`, [16]byte(id)).Scan(
		&secret); err != nil {
		t.Fatal(err)
	}
	return secret.Code([]byte("key"))
}

func (d *district) text(t *testing.T, query string, args ...any) (text string) {
	t.Helper()
	if err := d.pool.QueryRow(t.Context(), query, args...).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

// TestVerifyInTwoProcesses: requests with one key come to two processes at once. One message is sent, and one is
// counted.
func TestVerifyInTwoProcesses(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	one, other := d.process(t), d.process(t)
	for n := range 20 {
		number := fmt.Sprintf("+257791234%02d", n)
		var both sync.WaitGroup
		for _, in := range []*Intake{one, other} {
			both.Go(func() {
				if _, err := in.Verify(context.Background(), d.principal, asked(number),
					&Key{Name: number, Request: [32]byte{1}}); err != nil && !errors.Is(err, ErrKeyInUse) {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if got := d.text(t, `SELECT format('%s counted, %s sent, last %s', v.sends, count(m.*), bool_or(m.ulid = v.message))
			FROM verifications v JOIN messages m ON m.phone_number = v.phone_number WHERE v.phone_number = $1 GROUP BY v.id`,
			number); got != "1 counted, 1 sent, last t" {
			t.Errorf("%s: %s", number, got)
		}
	}
}

// oneMore is asked with another reference: no repetition of a moment ago.
func oneMore(number string) verifications.Request {
	r := asked(number)
	r.Reference = ulid.Make().String()
	return r
}

// TestVerifyRefused: nothing remains of messages that are refused, also of several at once.
func TestVerifyRefused(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1)
	one, other := d.process(t), d.process(t)
	v := d.verify(t, one, asked("+25779123456"))
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			in := []*Intake{one, other}[n%2]
			for _, number := range []string{"+25779123456", "+25779123457"} {
				if _, err := in.Verify(context.Background(), d.principal, oneMore(number), nil); err == nil {
					t.Error("sent without credits")
				}
			}
		})
	}
	all.Wait()
	if got := d.text(t, `SELECT format('%s %s %s', sends, message = $1, sent_at = created_at) FROM verifications`,
		[16]byte(v.MessageID)); got != "1 t t" {
		t.Error(got)
	}
}

// TestVerifyInDoubt: if a COMMIT gets no answer, a message is counted exactly if it was accepted.
func TestVerifyInDoubt(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	d := newDistrictOn(t, pool, 100)
	in := d.process(t)
	standby := testenv.NewStandby(t, server)
	standby.Away()
	first := make(chan error, 1)
	go func() {
		_, err := in.Verify(context.Background(), d.principal, asked("+25779123456"), nil)
		first <- err
	}()
	standby.Until("the commit waits for the standby", func() bool { return standby.Waiting() == 1 }, first)
	standby.GiveUp()
	standby.Back()
	if err := <-first; err != nil {
		t.Errorf("committed after all: %v", err)
	}
	const counted = `SELECT format('sends %s, messages %s', (SELECT sum(sends) FROM verifications), (SELECT count(*)
		FROM messages))`
	if got := d.text(t, counted); got != "sends 1, messages 1" {
		t.Error(got)
	}
	if _,
		err := pool.Exec(t.Context(), `ALTER TABLE messages ADD CONSTRAINT no_more CHECK (id < 0) NOT VALID`); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Verify(t.Context(), d.principal, oneMore("+25779123456"), nil); err == nil {
		t.Error("accepted")
	}
	if got := d.text(t, counted); got != "sends 1, messages 1" {
		t.Errorf("of a message that the database refuses: %s", got)
	}
}

// TestVerifyTwice: of equal requests without a key within a second one sends, and all are told the same.
func TestVerifyTwice(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	one, other := d.process(t), d.process(t)
	sent := func() string {
		return d.text(t, `SELECT format('%s %s', (SELECT sum(sends) FROM verifications), (SELECT count(*) FROM messages))`)
	}
	bodies := make(chan string, 20)
	var all sync.WaitGroup
	for n := range cap(bodies) {
		all.Go(func() {
			answer, err := []*Intake{one, other}[n%2].Verify(context.Background(), d.principal, asked("+25779123456"), nil)
			if err != nil {
				t.Error(err)
			}
			bodies <- string(answer.Body)
		})
	}
	all.Wait()
	for first := <-bodies; len(bodies) > 0; {
		if body := <-bodies; body != first {
			t.Errorf("%s is not %s", body, first)
		}
	}
	if got := sent(); got != "1 1" {
		t.Error(got)
	}
	for n, key := range []*Key{{Name: "a", Request: [32]byte{1}}, {Name: "b", Request: [32]byte{1}}, nil} {
		if answer, err := one.Verify(t.Context(), d.principal, asked("+25779123456"), key); err != nil || answer.Replayed {
			t.Errorf("request %d: %v", n, err)
		}
		if got, want := sent(), fmt.Sprintf("%d %[1]d", n+2); got != want {
			t.Errorf("request %d: %s", n, got)
		}
	}
	d.exec(t, `UPDATE verifications SET sent_at = sent_at - interval '1 second'`)
	if answer, err := one.Verify(t.Context(), d.principal, asked("+25779123456"), nil); err != nil || answer.Replayed ||
		sent() != "5 5" {
		t.Errorf("a second later: %v", err)
	}
}

// TestVerifyKeepsSender: a request that joins a verification keeps its sender, in the message too, while it can be
// used.
func TestVerifyKeepsSender(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	in := d.process(t)
	if _, err := d.senders.CreateSender(t.Context(), 1, "OTHER", "", true); err != nil {
		t.Fatal(err)
	}
	d.verify(t, in, asked("+25779123456"))
	r := asked("+25779123456")
	r.Sender = "OTHER"
	fresh, err := d.holders.Fresh(t.Context(), d.principal)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ACME", "OTHER"} {
		answer, err := in.Verify(t.Context(), fresh, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.text(t, `SELECT format('%s %s', v.sender, m.sender) FROM verifications v
			JOIN messages m ON m.ulid = v.message`); got != want+" "+want {
			t.Errorf("%s, want %s: %s", got, want, answer.Body)
		}
		company := *fresh.Company
		company.Senders = map[string]accounts.Sender{"OTHER": company.Senders["OTHER"]} // ACME was taken away
		fresh.Company, r.Reference = &company, "again"
	}
}

// TestSandboxCode: the sandbox has a code that everybody knows, and nothing else has it.
func TestSandboxCode(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	in := d.process(t)
	for _, c := range []struct {
		number, sender string
		digits         int
		code           string
		known          bool
	}{
		{"+25701000001", "TEST", 6, "123456", true}, {"+25701000001", "TEST", 10, "1234567890", true},
		{"+25701000001", "ACME", 10, "1234567890", false},
		{"+25779123456", "ACME", 10, "1234567890", false},
	} {
		r := asked(c.number)
		r.Sender, r.Digits = c.sender, c.digits
		v := d.verify(t, in, r)
		if _, err := in.CheckCode(t.Context(), sms.CompanyID(d.principal.Company.ID), v.ID,
			verifications.Entry{Code: c.code}); (err == nil) != c.known {
			t.Errorf("%+v: %v", c, err)
		}
		d.exec(t, `UPDATE verifications SET sent_at = sent_at - interval '1 second'`)
	}
	if got := d.text(t, `SELECT count(*)::text FROM conversions`); got != "0" {
		t.Errorf("%s conversions of the sandbox", got)
	}
}

// TestUnsentCodeFails: a code that no carrier can have ends as failed, whatever ends first, its message or the
// verification.
func TestUnsentCodeFails(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	in := d.process(t)
	for n, c := range []struct{ change, want string }{
		{`SELECT $1::bigint`, "failed"},
		{`UPDATE messages SET status = 2, failed_at = now() WHERE id = $1`, "failed"},
		{`UPDATE outbox SET claimed_by = 1, begun = false WHERE message_id = $1`, "failed"},
		{`UPDATE outbox SET claimed_by = 1, begun = true WHERE message_id = $1`, "expired"},
		{`INSERT INTO segments (carrier, key, link, message_id, segment, total, submitted_at)
			VALUES ('leo', '?1', 'leo', $1, 1, 1, now())`, "expired"},
		{`WITH gone AS (DELETE FROM outbox WHERE message_id = $1) INSERT INTO segments (carrier, key, link, message_id,
			segment, total, submitted_at) VALUES ('leo', '1', 'leo', $1, 1, 1, now())`, "expired"},
	} {
		v := d.verify(t, in, asked(fmt.Sprintf("+2577912345%d", n)))
		d.exec(t, strings.ReplaceAll(c.change, "$1", `(SELECT id FROM messages WHERE ulid = '`+uuidOf(v.MessageID)+`')`))
		d.exec(t, `UPDATE verifications SET expires_at = now() WHERE state = 0`)
		if _, err := in.endVerifications(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now, err := in.opts.Verifications.ByULID(t.Context(), sms.CompanyID(d.principal.Company.ID), v.ID); err != nil ||
			now.State.String() != c.want {
			t.Errorf("%s: %s, %v", c.change, now.State, err)
		}
	}
}

func uuidOf(id ulid.ULID) string { return fmt.Sprintf("%x", [16]byte(id)) }

func (d *district) exec(t *testing.T, query string) {
	t.Helper()
	if _, err := d.pool.Exec(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// TestCheckTwice: of right checks at once one approves, and all are told the same. It gives no free guesses.
func TestCheckTwice(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	one, other := d.process(t), d.process(t)
	company := sms.CompanyID(d.principal.Company.ID)
	v := d.verify(t, one, asked("+25779123456"))
	right := verifications.Entry{Code: d.code(t, v.ID)}
	var first atomic.Int32
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			v, err := []*Intake{one, other}[n%2].CheckCode(context.Background(), company, v.ID, right)
			if err != nil || v.State != verifications.Approved {
				t.Errorf("%v, %v", v.State, err)
			}
			if !v.Repeated {
				first.Add(1)
			}
		})
	}
	all.Wait()
	if got := d.text(t, `SELECT format('%s/%s', sum(converted), sum(asked)) FROM conversions`); first.Load() != 1 ||
		got != "1/1" {
		t.Errorf("%d approvals, %s conversions", first.Load(), got)
	}
	for range verifications.MostChecks {
		if _, err := one.CheckCode(t.Context(), company, v.ID, verifications.Entry{Code: "0"}); !errors.Is(
			err, verifications.ErrFinished) {
			t.Error(err)
		}
	}
	if _, err := one.CheckCode(t.Context(), company, v.ID, right); !errors.Is(err, verifications.ErrFinished) {
		t.Errorf("after five guesses: %v", err)
	}
	d.exec(t, `UPDATE verifications SET wrong = 0, finished_at = finished_at - interval '1 second'`)
	if _, err := one.CheckCode(t.Context(), company, v.ID, right); !errors.Is(err, verifications.ErrFinished) {
		t.Errorf("a second later: %v", err)
	}
}

// TestGuessesOfANumber: a number has ten wrong codes of a company within an hour, over verifications that were open
// before and guesses at once in two processes. Neither other companies nor the time of the first message matter.
func TestGuessesOfANumber(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	one, other := d.process(t), d.process(t)
	company := sms.CompanyID(d.principal.Company.ID)
	open := make([]Verified, 20)
	for n := range open {
		r := asked("+25779123456")
		r.Amount, r.Payee, r.Digits = strconv.Itoa(n), "B", 4
		open[n] = d.verify(t, one, r)
	}
	guess := func(in *Intake, v *Verified) error {
		_, err := in.CheckCode(context.Background(), company, v.ID,
			verifications.Entry{Code: "0", Amount: v.Amount, Payee: v.Payee})
		return err
	}
	var wrong atomic.Int32
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() {
			err := guess([]*Intake{one, other}[n%2], &open[n%len(open)])
			limit, limited := errors.AsType[*verifications.LimitError](err)
			switch {
			case errors.Is(err, verifications.ErrWrong):
				wrong.Add(1)
			case errors.Is(err, ErrUnavailable): // the machine is slow
			case !limited || limit.Limit != "checks" || limit.After < time.Minute:
				t.Error(err)
			}
		})
	}
	all.Wait()
	for n := 0; n < len(open) && wrong.Load() < 10; n++ {
		if errors.Is(guess(one, &open[n]), verifications.ErrWrong) {
			wrong.Add(1)
		}
	}
	if got := d.text(t, `SELECT sum(wrong)::text FROM verifications`); wrong.Load() > 10 || got != "10" {
		t.Errorf("%d guesses, %s counted", wrong.Load(), got)
	}
	if _, err := one.CheckCode(t.Context(), company, open[19].ID,
		verifications.Entry{Code: d.code(t, open[19].ID), Amount: "19", Payee: "B"}); err == nil {
		t.Error("the right code tells that it is right")
	}
	// they were opened long before the guesses
	d.exec(t, `UPDATE verifications SET created_at = created_at - interval '61 minutes'`)
	if err := guess(one, &open[0]); errors.Is(err, verifications.ErrWrong) {
		t.Error("an older verification's guesses are free")
	}
	d.exec(t, `UPDATE verifications SET wrong_at = wrong_at - interval '61 minutes'`)
	if err := guess(one, &open[19]); !errors.Is(err, verifications.ErrWrong) && !errors.Is(err, verifications.ErrChecks) {
		t.Errorf("an hour later: %v", err)
	}
}

// TestFeedbackCountsOnce: a report stays where it was first counted, and none counts a person whom a verification
// counts.
func TestFeedbackCountsOnce(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 10)
	in := d.process(t)
	company := sms.CompanyID(d.principal.Company.ID)
	f := verifications.Feedback{Company: company, MessageID: 7, Message: ulid.Make(), CreatedAt: time.Now(),
		Carrier: "leo", Number: "+25779123456", Converted: true}
	report := func(f verifications.Feedback, want string) {
		t.Helper()
		if err := in.Feedback(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if got := d.text(t, `SELECT string_agg(format('%s %s/%s', carrier, c, a), ', ' ORDER BY carrier)
			FROM (SELECT carrier, sum(converted) c, sum(asked) a FROM conversions GROUP BY 1) days`); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	report(f, "leo 1/1")
	f.Carrier, f.Converted, f.CreatedAt = "onatel", false, f.CreatedAt.AddDate(0, 0, 1)
	report(f, "leo 0/1")
	report(f, "leo 0/1")
	f.Converted = true
	report(f, "leo 1/1")

	first := d.verify(t, in, asked("+25779123456"))
	second := d.verify(t, in, oneMore("+25779123456"))
	for n, v := range []Verified{first, second} {
		report(verifications.Feedback{Company: company, MessageID: int64(8 + n), Message: v.MessageID, CreatedAt: time.Now(),
			Carrier: "leo", Number: v.To, Converted: true}, "leo 1/1")
	}
	if _, err := in.CheckCode(t.Context(), company, first.ID, verifications.Entry{Code: d.code(t, first.ID)}); err != nil {
		t.Fatal(err)
	}
	report(verifications.Feedback{Company: company, MessageID: 8, Message: first.MessageID, CreatedAt: time.Now(),
		Carrier: "leo", Number: first.To}, "leo 2/2")
}

// TestVerifyBySomeOtherSender: a request by the test sender neither joins a live verification nor counts for its
// number, and the other way round: else a test would be sent under a live name, or a live message for free.
func TestVerifyBySomeOtherSender(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	in := d.process(t)
	test := asked("+25779123456")
	test.Sender = "TEST"
	caller := *d.principal
	caller.TestNumber = test.Number
	live := d.verify(t, in, asked("+25779123456"))
	answer, err := in.Verify(t.Context(), &caller, test, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again := d.verify(t, in, oneMore("+25779123456")); again.ID != live.ID || again.Sender != "ACME" ||
		again.SendsLeft != 3 {
		t.Errorf("%+v, then %s", again, answer.Body)
	}
	if got := d.text(
		t,
		`SELECT string_agg(sender || ' ' || test, ', ' ORDER BY id)
			FROM messages`); got != "ACME false, TEST true, ACME false" {
		t.Error(got)
	}
}

// TestVerificationByItsCarrier: whether the person answered counts for the carrier that has the last message now.
func TestVerificationByItsCarrier(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	in := d.process(t)
	v := d.verify(t, in, asked("+25779123456"))
	if err := pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE messages SET carrier = 'onatel' WHERE ulid = $1`, [16]byte(v.MessageID))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := in.CheckCode(t.Context(), sms.CompanyID(d.principal.Company.ID), v.ID,
		verifications.Entry{Code: d.code(t, v.ID)}); err != nil {
		t.Fatal(err)
	}
	if got := d.text(
		t,
		`SELECT string_agg(format('%s %s %s/%s', carrier, block, converted, asked), ', ')
			FROM conversions`); got != "onatel +2577912 1/1" {
		t.Error(got)
	}
}

// TestVerificationsLeaveConnections: requests that wait for one number leave room for other companies' messages.
func TestVerificationsLeaveConnections(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	in := d.process(t)
	held, err := d.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _,
		err := held.Exec(
		t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended('verifications +25779123456', 0))`); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 * int(d.pool.Config().MaxConns) {
		all.Go(func() { _, _ = in.Verify(context.Background(), d.principal, oneMore("+25779123456"), nil) })
	}
	for deadline := time.Now().Add(20 * time.Second); len(in.turns) < cap(in.turns) ||
		d.pool.Stat().AcquiredConns() < int32(cap(in.turns)); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing waits")
		}
	}
	if _, err := in.Send(t.Context(), d.principal, d.request("x", nil)); err != nil {
		t.Error(err)
	}
	if err := held.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if got := d.text(t, `SELECT format('%s %s', count(*), sum(sends)) FROM verifications`); got != "1 5" {
		t.Error(got)
	}
}

// TestVerificationsEndTogether: several processes end verifications of many blocks at once, each once and without a
// deadlock.
func TestVerificationsEndTogether(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	one, other := d.process(t), d.process(t)
	const n = 3000
	if _, err := d.pool.Exec(t.Context(), `INSERT INTO verifications (ulid, company_id, user_id, phone_number, sender,
		locale, secret, test, expires_at, message, carrier)
		SELECT gen_random_uuid(), 1, 1, '+25779' || lpad((i * 7919 % 1000000)::text, 6, '0'), 'ACME', 'en', '', false,
			now() - random() * interval '1 minute', gen_random_uuid(), 'leo'
		FROM generate_series(1, $1) i`, n); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, in := range []*Intake{one, other} {
		all.Go(func() {
			for more := true; more; {
				var err error
				if more, err = in.endVerifications(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if _, err := one.endVerifications(t.Context()); err != nil {
		t.Error(err)
	}
	if got := d.text(t, `SELECT format('%s %s', (SELECT sum(asked) FROM conversions), (SELECT count(*) FROM verifications
		WHERE state = 3))`); got != fmt.Sprintf("%d %d", n, n) {
		t.Error(got)
	}
	if got := d.text(t, `SELECT deadlocks::text FROM pg_stat_database WHERE datname = current_database()`); got != "0" {
		t.Errorf("%s deadlocks", got)
	}
}

// TestApprovedIsOnTheStandby: neither a check nor a look-up says that a verification is approved before the standby has
// it.
func TestApprovedIsOnTheStandby(t *testing.T) {
	t.Parallel()
	server := testenv.NewPostgresServer(t)
	pool, err := postgres.Open(t.Context(), server.URL(), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	d := newDistrictOn(t, pool, 100)
	in := d.process(t)
	v := d.verify(t, in, asked("+25779123456"))
	code, company := d.code(t, v.ID), sms.CompanyID(d.principal.Company.ID)
	standby := testenv.NewStandby(t, server)
	standby.Away()
	first := make(chan error, 1)
	go func() {
		_, err := in.CheckCode(context.Background(), company, v.ID, verifications.Entry{Code: code})
		first <- err
	}()
	standby.Until("the commit waits for the standby", func() bool { return standby.Waiting() == 1 }, first)
	standby.GiveUp()
	if err := <-first; !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("a commit that is on one server: %v", err)
	}
	found := make(chan error, 1)
	go func() {
		v, err := in.FindApproved(context.Background(), company, v.ID)
		if err == nil && v.State != verifications.Approved {
			err = errors.New(v.State.String())
		}
		found <- err
	}()
	standby.Until("the look-up waits as well", func() bool { return standby.Waiting() >= 1 }, found)
	standby.Back()
	if err := <-found; err != nil {
		t.Errorf("when it is safe: %v", err)
	}
}

// TestVerifyCountsAllWrongCodes: cancelled verifications and those of other payments do not give more tries.
func TestVerifyCountsAllWrongCodes(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	in := d.process(t)
	company := sms.CompanyID(d.principal.Company.ID)
	for n := range 3 {
		r := asked("+25779123456")
		r.Amount, r.Payee = strconv.Itoa(n), "B"
		answer, err := in.Verify(t.Context(), d.principal, r, nil)
		if limit, reached := errors.AsType[*verifications.LimitError](err); n == 2 {
			if !reached || limit.Limit != "checks" {
				t.Fatalf("after ten wrong codes: %s, %v", answer.Body, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var v Verified
		if err := json.Unmarshal(answer.Body, &v); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if _, err := in.CheckCode(t.Context(), company, v.ID,
				verifications.Entry{Code: "0", Amount: r.Amount, Payee: r.Payee}); !errors.Is(err, verifications.ErrWrong) {
				t.Fatal(err)
			}
		}
		if got := d.text(t, `WITH cancelled AS (UPDATE verifications SET state = 2 RETURNING 1) SELECT 'now'`); got != "now" {
			// in time
			t.Fatal(got)
		}
	}
}

// TestCodesUnanswered: 300 codes to one block that nobody enters are found beside 900 that are entered.
func TestCodesUnanswered(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 10)
	in := d.process(t)
	if found, err := in.opts.Verifications.Unanswered(t.Context()); err != nil || len(found) != 0 {
		t.Fatalf("%v, %v", found, err)
	}
	d.exec(t, `INSERT INTO verifications (ulid, company_id, user_id, phone_number, sender, locale, secret, test,
		created_at, expires_at, message, carrier, state)
		SELECT gen_random_uuid(), company, 1, block || lpad(i::text, 4, '0'), 'ACME', 'en', '', test, now() - age, now(),
			gen_random_uuid(), 'leo', state
		FROM (VALUES (1, '+2577911', false, '10 min'::interval, 0, 150), (1, '+2577911', false, '50 min', 3,
		150), -- nobody enters these
			(1, '+2577912', false, '10 min', 1, 900), (2, '+2577911', false, '10 min', 1, 100), (2, '+2577911', false, '10 min',
			3, 300), -- a quarter
			(3, '+2577913', false, '10 min', 3, 49), (4, '+2577914', true, '10 min', 3, 100), (5, '+2577915', false, '10 min', 2,
			100),
			(6, '+2577916', false, '1 min', 0, 100), (7, '+2577917', false, '2 hours', 3, 100)) v (company, block, test, age,
			state, n), generate_series(1, n) i`)
	found, err := in.opts.Verifications.Unanswered(t.Context())
	if want := (verifications.Unanswered{Company: 1, Block: "+2577911", Codes: 300}); err != nil || len(found) != 1 ||
		found[0] != want {
		t.Errorf("%+v, %v", found, err)
	}
	if again := in.lookForUnanswered(t.Context(), nil); len(again) != 1 {
		t.Errorf("%+v", again)
	}
}
