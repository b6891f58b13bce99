package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/sms"
	"intumwa/verifications"
)

func asked(number string) verifications.Request {
	return verifications.Request{Number: sms.Number(number), Sender: "ACME", Locale: "en", Digits: 6, Life: 10 * time.Minute}
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
	if err := d.pool.QueryRow(t.Context(), `SELECT secret FROM verifications WHERE ulid = $1`, [16]byte(id)).Scan(&secret); err != nil {
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

// TestVerifyInTwoProcesses: requests with one key come to two processes at once. One message is sent, and one is counted.
func TestVerifyInTwoProcesses(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	one, other := d.process(t), d.process(t)
	for n := range 20 {
		number := fmt.Sprintf("+257791234%02d", n)
		var both sync.WaitGroup
		for _, in := range []*Intake{one, other} {
			both.Go(func() {
				if _, err := in.Verify(context.Background(), d.principal, asked(number), &Key{Name: number, Request: [32]byte{1}}); err != nil && !errors.Is(err, ErrKeyInUse) {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if got := d.text(t, `SELECT format('%s counted, %s sent, last %s', v.sends, count(m.*), bool_or(m.ulid = v.message))
			FROM verifications v JOIN messages m ON m.phone_number = v.phone_number WHERE v.phone_number = $1 GROUP BY v.id`, number); got != "1 counted, 1 sent, last t" {
			t.Errorf("%s: %s", number, got)
		}
	}
}

// TestVerifyRefused: of a verification whose second message is refused, the first one is the last.
func TestVerifyRefused(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1)
	in := d.process(t)
	v := d.verify(t, in, asked("+25779123456"))
	if _, err := in.Verify(t.Context(), d.principal, asked("+25779123456"), nil); err == nil {
		t.Fatal("sent without credits")
	}
	if got := d.text(t, `SELECT format('%s %s', sends, message = $1) FROM verifications`, [16]byte(v.MessageID)); got != "1 t" {
		t.Error(got)
	}
}

// TestVerifyBySomeOtherSender: a request by the test sender neither joins a live verification nor counts for its number, and
// the other way round: else a test would be sent under a live name, or a live message for free.
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
	if again := d.verify(t, in, asked("+25779123456")); again.ID != live.ID || again.Sender != "ACME" || again.SendsLeft != 3 {
		t.Errorf("%+v, then %s", again, answer.Body)
	}
	if got := d.text(t, `SELECT string_agg(sender || ' ' || test, ', ' ORDER BY id) FROM messages`); got != "ACME false, TEST true, ACME false" {
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
	if _, err := in.CheckCode(t.Context(), sms.CompanyID(d.principal.Company.ID), v.ID, verifications.Entry{Code: d.code(t, v.ID)}); err != nil {
		t.Fatal(err)
	}
	if got := d.text(t, `SELECT string_agg(format('%s %s %s/%s', carrier, block, converted, asked), ', ') FROM conversions`); got != "onatel +2577912 1/1" {
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
	if _, err := held.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended('verifications +25779123456', 0))`); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 * int(d.pool.Config().MaxConns) {
		all.Go(func() { _, _ = in.Verify(context.Background(), d.principal, asked("+25779123456"), nil) })
	}
	for deadline := time.Now().Add(20 * time.Second); len(in.turns) < cap(in.turns) || d.pool.Stat().AcquiredConns() < int32(cap(in.turns)); time.Sleep(time.Millisecond) {
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

// TestVerificationsEndTogether: several processes end verifications of many blocks at once, each once and without a deadlock.
func TestVerificationsEndTogether(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1000)
	one, other := d.process(t), d.process(t)
	const n = 3000
	if _, err := d.pool.Exec(t.Context(), `INSERT INTO verifications (ulid, company_id, user_id, phone_number, sender, locale, secret, test, expires_at, message, carrier)
		SELECT gen_random_uuid(), 1, 1, '+25779' || lpad((i * 7919 % 1000000)::text, 6, '0'), 'ACME', 'en', '', false, now() - random() * interval '1 minute', gen_random_uuid(), 'leo'
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
	if got := d.text(t, `SELECT format('%s %s', (SELECT sum(asked) FROM conversions), (SELECT count(*) FROM verifications WHERE state = 3))`); got != fmt.Sprintf("%d %d", n, n) {
		t.Error(got)
	}
	if got := d.text(t, `SELECT deadlocks::text FROM pg_stat_database WHERE datname = current_database()`); got != "0" {
		t.Errorf("%s deadlocks", got)
	}
}

// TestApprovedIsOnTheStandby: neither a check nor a look-up says that a verification is approved before the standby has it.
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
			if _, err := in.CheckCode(t.Context(), company, v.ID, verifications.Entry{Code: "0", Amount: r.Amount, Payee: r.Payee}); !errors.Is(err, verifications.ErrWrong) {
				t.Fatal(err)
			}
		}
		if got := d.text(t, `WITH cancelled AS (UPDATE verifications SET state = 2 RETURNING 1) SELECT 'now'`); got != "now" { // in time
			t.Fatal(got)
		}
	}
}
