package messages_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/retention"
	"intumwa/messages/statistics"
	"intumwa/sms"
)

// The truth: messages and segments, deleted ones included, without any rollup.
const (
	everything = `CREATE TABLE gone_messages (LIKE messages);
		CREATE TABLE gone_segments (LIKE segments);
		CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF TG_TABLE_NAME = 'messages' THEN INSERT INTO gone_messages SELECT OLD.*; ELSE INSERT INTO gone_segments
			SELECT OLD.*; END IF;
			RETURN OLD;
		END $$;
		CREATE TRIGGER gone BEFORE DELETE ON messages FOR EACH ROW EXECUTE FUNCTION gone();
		CREATE TRIGGER gone BEFORE DELETE ON segments FOR EACH ROW EXECUTE FUNCTION gone();
		CREATE VIEW all_messages AS SELECT * FROM messages UNION ALL SELECT * FROM gone_messages;
		CREATE VIEW all_segments AS SELECT * FROM segments UNION ALL SELECT * FROM gone_segments`

	trueQuality = `SELECT (created_at + interval '2 hours')::date::text || ' ' || company_id || ' ' || m.carrier || ' ' ||
		sender || ' ' || (ARRAY['single','batch','test'])[CASE WHEN test THEN 3 WHEN batch_id IS NULL THEN 1 ELSE 2 END]
			|| ' ' || (ARRAY['api','page','smpp','kannel'])[coalesce(channel, 0) + 1] || ' ' || coalesce(cost_center, '-') || ' '
			|| count(*) FILTER (WHERE status = 0 AND NOT held) || ' ' || count(*) FILTER (WHERE status = 0
			AND held) || ' ' || count(*) FILTER (WHERE status = 1)
			|| ' ' || count(*) FILTER (WHERE status = 2) || ' ' || sum(segments) || ' ' || count(*) FILTER (WHERE failure_reason
			= 'expired')
			|| ' ' || count(*) FILTER (WHERE submitted - created_at < interval '1 s') || ' ' || count(submitted)
			|| ' ' || count(*) FILTER (WHERE reported AND coalesce(sent_at, failed_at) - submitted < interval '1 m') || ' ' ||
			count(*) FILTER (WHERE reported)
		FROM all_messages m CROSS JOIN LATERAL (
			SELECT coalesce(bool_or(true), false) AS held, min(submitted_at) FILTER (WHERE key NOT LIKE '?%') AS submitted,
				coalesce(bool_or(receipt_at IS NOT NULL), false) AS reported
			FROM all_segments s WHERE s.message_id = m.id
		) s WHERE company_id <> 0 GROUP BY (created_at + interval '2 hours')::date, company_id, m.carrier, sender, test,
		batch_id IS NULL, channel, cost_center`

	trueCarried = `SELECT (submitted_at + interval '2 hours')::date::text || ' ' || s.carrier || ' ' || link || ' ' ||
		(test OR company_id = 0) || ' '
			|| count(*) FILTER (WHERE key NOT LIKE '?%') || ' ' || count(*) FILTER (WHERE key LIKE '?%')
		FROM all_segments s JOIN all_messages m ON m.id = s.message_id GROUP BY (submitted_at + interval '2 hours')::date,
		s.carrier, link, test OR company_id = 0`
)

// line is a row of Quality as trueQuality has it.
func line(q *statistics.Quality) string {
	centre, expired := q.CostCenter, int64(0)
	if centre == "" {
		centre = "-"
	}
	for _, r := range q.Reasons {
		if r.Reason == "expired" {
			expired = r.Messages
		}
	}
	sum := func(t statistics.Times) (n int64) {
		for _, one := range t {
			n += one
		}
		return n
	}
	first := func(t statistics.Times, buckets int) int64 { return sum(t[:min(buckets, len(t))]) }
	return fmt.Sprintf("%s %d %s %s %s %s %s %d %d %d %d %d %d %d %d %d %d", q.Day.Format(time.DateOnly), q.Company,
		q.Carrier, q.Sender, q.Kind, q.Channel, centre,
		q.Waiting, q.AtCarrier, q.Sent, q.Failed, q.Segments, expired, first(q.ToCarrier, 4), sum(q.ToCarrier),
		first(q.ToReceipt, 9), sum(q.ToReceipt))
}

var (
	anyTime = statistics.QualityFilter{AllCompanies: true, First: time.Now().AddDate(-2, 0, 0),
		Last: time.Now().AddDate(0, 0, 2)}
	byAll = []statistics.Dimension{statistics.ByDay, statistics.ByCompany, statistics.ByCarrier, statistics.BySender,
		statistics.ByKind, statistics.ByChannel, statistics.ByCostCenter}
)

// exact compares all rollups with all messages.
func (d *testStore) exact(when string) {
	d.Helper()
	counted, err := d.Quality(d.Context(), anyTime, byAll...)
	if err != nil {
		d.Fatal(err)
	}
	lines := []string{}
	for i := range counted {
		lines = append(lines, line(&counted[i]))
	}
	compare := func(what string, got []string, query string) {
		d.Helper()
		want := column[string](d, query)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			d.Fatalf("%s: %s\n%s\nwant\n%s", when, what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	compare("quality", lines, trueQuality)
	totals, err := d.Quality(d.Context(), anyTime, statistics.ByCarrier)
	if err != nil {
		d.Fatal(err)
	}
	lines = nil
	for i := range totals {
		lines = append(lines, fmt.Sprint(totals[i].Carrier, totals[i].Accepted(), totals[i].Sent, totals[i].Credits))
	}
	compare("totals", lines, `SELECT carrier || count(*) || ' ' || count(*) FILTER (WHERE status = 1) || ' ' ||
		coalesce(sum(segments) FILTER (WHERE NOT test), 0)
		FROM all_messages WHERE company_id <> 0 GROUP BY carrier`)
	carried, err := d.Carried(d.Context(), anyTime.First, anyTime.Last, "", 0)
	if err != nil {
		d.Fatal(err)
	}
	lines = nil
	for _, c := range carried {
		lines = append(lines, fmt.Sprintf("%s %s %s %t %d %d", c.Day.Format(time.DateOnly), c.Carrier, c.Link, c.Unpaid,
			c.Accepted, c.Unanswered))
	}
	compare("carried", lines, trueCarried)
}

// tallied lets an hour pass for the counts, if so, and counts what is due.
func (d *testStore) tallied(later bool) {
	d.Helper()
	if later {
		if _, err := d.Tally(d.Context()); err != nil { // which notes new chunks
			d.Fatal(err)
		}
		d.exec(`UPDATE tally_chunks SET counted_at = counted_at - interval '1 hour',
			changed_at = changed_at - interval '1 hour'`)
	}
	for counted := true; counted; {
		var err error
		if counted, err = d.Tally(d.Context()); err != nil {
			d.Fatal(err)
		}
	}
}

// TestRollups: whatever happens in whatever order, the counts equal those of all messages and segments, the deleted
// ones included, at every moment.
func TestRollups(t *testing.T) {
	d := newHotStore(t)
	d.exec(everything)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var waiting, at []int64 // pending messages: not submitted; at the carrier
	acceptedIDs := map[int64]string{}
	take := func(from *[]int64) (id int64) {
		i := r.IntN(len(*from))
		id = (*from)[i]
		*from = slices.Delete(*from, i, i+1)
		return id
	}
	steps := []func() string{
		func() string {
			n := 1 + r.IntN(8)
			for range n {
				_, more := d.one(r)
				waiting = append(waiting, more...)
			}
			return fmt.Sprint("insert ", n)
		},
		func() string { // a chunk ends
			d.exec(`SELECT setval('messages_id_seq', ((last_value + 3) / 100000 + 1) * 100000 - 3) FROM messages_id_seq`)
			return "jump"
		},
		func() string {
			if len(waiting) == 0 {
				return ""
			}
			id := take(&waiting)
			acceptedIDs[id] = fmt.Sprint("a", id)
			s := accepted(id, acceptedIDs[id], at2(r))
			s.Unanswered = r.IntN(5) == 0
			d.settle([]receipts.Segment{s})
			at = append(at, id)
			return "submit"
		},
		func() string {
			if len(at) == 0 {
				return ""
			}
			id := take(&at)
			report := receipt(acceptedIDs[id], []string{"DELIVRD", "UNDELIV"}[r.IntN(2)])
			report.Number, report.At = string(d.number(id)), time.Now().Add(time.Duration(r.IntN(3600))*time.Second)
			if s := d.settle(nil, report); len(s.settled) == 0 { // of an unanswered segment
				d.finish(messages.Final{MessageID: id, Status: sms.Failed, At: time.Now(), Reason: "no_answer"})
			}
			d.exec(`DELETE FROM outbox WHERE message_id = $1`, id)
			return "receipt"
		},
		func() string {
			if len(waiting) == 0 {
				return ""
			}
			d.finish(messages.Final{MessageID: take(&waiting), Status: sms.Failed, At: time.Now(), Reason: "expired"})
			return "expire"
		},
		func() string { d.tallied(false); return "tally" },
		func() string { d.tallied(true); return "tally later" },
		func() string { return fmt.Sprint("purge ", d.purge(retention.PurgeMessages)) },
	}
	for i := range 150 {
		if did := steps[r.IntN(len(steps))](); did != "" {
			d.exact(fmt.Sprintf("step %d, %s", i, did))
		}
	}
	for len(waiting)+len(at) > 0 {
		id := append(waiting, at...)[0]
		d.finish(messages.Final{MessageID: id, Status: sms.Sent, At: time.Now()})
		d.exec(`DELETE FROM outbox WHERE message_id = $1`, id)
		waiting, at = append(waiting, at...)[1:], nil
	}
	d.exec(`SELECT setval('messages_id_seq', (last_value / 100000 + 1) * 100000) FROM messages_id_seq`)
	d.one(r)
	for range 3 {
		d.tallied(true)
	}
	d.exact("all final")
	if open := d.count(`SELECT count(*) FROM tally_chunks WHERE NOT closed`); open != 1 { // it can still grow
		t.Errorf("%d chunks are open", open)
	}
	d.purge(retention.PurgeMessages)
	d.exact("purged")
	audited, err := d.Audit(t.Context(), 1000*24*time.Hour)
	if err != nil || audited.Reports != 0 || audited.Unpaid+audited.Unrecorded != 0 {
		t.Errorf("the audit: %+v, %v", audited, err)
	}
}

// one records a message or batch with random properties, and its debit; some are old enough for the purge.
func (d *testStore) one(r *rand.Rand) (old bool, ids []int64) {
	d.Helper()
	change := func(m *messages.Message) {
		m.CompanyID, m.Segments, m.Test, m.Channel = int64(r.IntN(4)), 1, r.IntN(5) == 0, messages.Channel(r.IntN(4))
		m.Sender, m.CostCenter = []string{"DEMO", "ISOKO"}[r.IntN(2)], []string{"", "", "sales", "IT"}[r.IntN(4)]
	}
	if r.IntN(3) == 0 {
		_, ids = d.batch(int64(1+r.IntN(3)), 1+r.IntN(3))
	} else {
		m := d.compose(change)
		ids = d.insert(m)
		if !m.Test && m.CompanyID != 0 {
			d.paid(m.ULID, m.CompanyID, 1)
		}
	}
	if old = r.IntN(2) == 0; old {
		d.exec(`UPDATE messages SET created_at = now() - $2::interval WHERE id = ANY($1)`, ids,
			life+time.Duration(r.IntN(72))*time.Hour)
	}
	return old, ids
}

// at2 submits within some seconds of now.
func at2(r *rand.Rand) func(*receipts.Segment) {
	return func(s *receipts.Segment) {
		s.At = postgres.Now().Add(time.Duration(r.IntN(3000)) * time.Millisecond)
		s.Link = fmt.Sprint("lumitel-", 1+r.IntN(2))
	}
}

func (d *testStore) number(id int64) sms.Number {
	return sms.Number(column[string](d, `SELECT phone_number FROM messages WHERE id = $1`, id)[0])
}
