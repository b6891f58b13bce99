package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"intumwa/texts"
)

// qualityMessages stores messages of a company, a day ago: of two carriers, senders and cost centres, some of them
// failed, waiting, or at the carrier.
func (w *world) qualityMessages(company int64, n int) {
	w.t.Helper()
	w.exec(`with m as (
			insert into messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, created_at,
				carrier, status, sent_at, failed_at, failure_reason, channel, cost_center)
			select gen_random_uuid(), $1, 1, '+2577' || lpad(i::text, 7, '0'), case when i % 2 = 0 then 'DEMO'
				else 'NEWS' end, 'x', 0, 2, i % 10 = 9, at,
				case when i % 4 = 0 then 'leo' else 'lumitel' end, status, case when status = 1 then at + interval '4 seconds' end,
				case when status = 2 then at + interval '4 seconds' end, case when i % 10 = 1 then 'UNDELIV 001' when i % 10 = 2
				then 'expired' end,
				case when i % 5 = 0 then 1 end, case when i % 3 = 0 then '=IT' end
			from (select i, now() - interval '1 day' as at, case i % 10 when 0 then 0 when 1 then 2 when 2 then 2 when 3 then 0
			else 1 end as status from generate_series(1, $2::int) i) x
			returning id, carrier, created_at, status, failure_reason, sent_at, phone_number)
		insert into segments (message_id, segment, total, carrier, link, carrier_id, key, submitted_at, state, receipt,
			receipt_at)
		select id, 1, 1, carrier, carrier || '-1', id::text, id::text, created_at + interval '300 milliseconds',
			case status when 0 then null else status end, case status when 0 then null when 1 then 'DELIVRD'
			else 'UNDELIV' end, case when status <> 0 then created_at + interval '4 seconds' end
		from m where failure_reason is distinct from 'expired' and right(phone_number, 1) <> '0'`, company, n)
}

// TestQualityPage: the page counts what is in the database, in total, by day, by carrier and by reason, under any
// filter and for the own company only. Its file has the same sums.
func TestQualityPage(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 0)
	other, stranger := w.merchant("bob", 0)
	c.wants(c.get("/quality"), http.StatusOK, "No messages in this period")
	w.qualityMessages(company.ID, 400)
	w.qualityMessages(stranger.ID, 40)
	administrator := newClient(w)
	administrator.inside("root@example.com")

	figures := func(sent, failed, expired, noReceipt, waiting int) []string {
		return []string{fmt.Sprintf("%d messages: %d sent, %d failed, %d pending", sent+failed+noReceipt+waiting, sent,
			failed, noReceipt+waiting),
			fmt.Sprintf("reaching a carrier</dt><dd>%d<", expired), fmt.Sprintf("No receipt yet</dt><dd>%d<", noReceipt),
			fmt.Sprintf("Waiting</dt><dd>%d<", waiting)}
	}
	english, _ := w.d.words.ByTag("en")
	yesterday := time.Now().Add(-24 * time.Hour).In(texts.Bujumbura)
	day := yesterday.Format(time.DateOnly)
	check := func(c *client, path string, want ...string) answer {
		t.Helper()
		a := c.get(path)
		c.wants(a, http.StatusOK, want...)
		return a
	}
	all := figures(240, 80, 40, 40, 40)
	a := check(c, "/quality", all...)
	check(c, "/quality", "75.0 %", "500\u00a0ms / 500\u00a0ms / 500\u00a0ms", "5\u00a0s / 5\u00a0s / 5\u00a0s",
		"The carrier could not deliver it. Check that the number is in use, and try again later. Charged.",
		"<code>UNDELIV 001</code>",
		"It expired before it reached a carrier.", "50.0 %", `href="/quality?carrier=leo"`, english.Date(yesterday))
	if !strings.Contains(a.body, fmt.Sprintf(`viewBox="0 0 %d 1000"`, 30)) ||
		strings.Count(a.body, `<tr><td class="day">`) != 1 {
		t.Error("the plot lacks days, or the table has empty ones")
	}
	check(other, "/quality", figures(24, 8, 4, 4, 4)...)
	check(administrator, "/admin/quality", figures(264, 88, 44, 44, 44)...)
	check(administrator, fmt.Sprintf("/admin/quality?company=%d", company.ID), append(all, ">aline</a>")...)
	administrator.wants(administrator.get("/admin/quality?company=999999"), http.StatusUnprocessableEntity,
		"Enter a company number.")
	for query, want := range map[string][]string{
		"carrier=leo": figures(60, 20, 20, 0, 20), "sender=NEWS": figures(120, 40, 0, 40, 0),
		"kind=test":                figures(40, 0, 0, 0, 0),
		"kind=single&channel=page": figures(40, 0, 0, 0, 40), "channel=kannel": {"No messages in this period"},
		"cost_center=%3DIT":          figures(80, 26, 13, 14, 13),
		"from=" + day + "&to=" + day: all, "to=" + yesterday.AddDate(0, 0, -1).Format(time.DateOnly): {
			"No messages in this period"},
		"from=" + yesterday.AddDate(-1, 0, 0).Format(time.DateOnly): append(all, "Month by month"),
		"cost_center=it": {"No messages in this period"}, "kind=nonsense": all,
		"company=" + strconv.FormatInt(stranger.ID, 10): all,
	} {
		check(c, "/quality?"+query, want...)
	}
	for query, text := range map[string]string{"from=2026-13-01": "not a date",
		"from=2026-01-02&to=2026-01-01": "before the first", "from=2001-01-01&to=2026-01-01": "at most 5 years"} {
		c.wants(c.get("/quality?"+query), http.StatusUnprocessableEntity, text)
		c.wants(c.get("/quality.csv?"+query), http.StatusUnprocessableEntity, text)
	}

	for _, file := range []struct {
		c     *client
		path  string
		first int // column of the first figure
		want  []int
	}{
		{c, "/quality.csv", 6, []int{400, 240, 80, 40, 40, 40, 800, 720}},
		{c, "/quality.csv?sender=NEWS&kind=single", 6, []int{160, 80, 40, 0, 40, 0, 320, 320}},
		{administrator, "/admin/quality.csv", 7, []int{440, 264, 88, 44, 44, 44, 880, 792}},
		{administrator, fmt.Sprintf("/admin/quality.csv?company=%d&from=%s", stranger.ID,
			yesterday.AddDate(-2, 0, 0).Format(time.DateOnly)), 7, []int{40, 24, 8, 4, 4, 4, 80, 72}},
	} {
		rows, sums := file.c.lines(file.c.get(file.path)), make([]int, len(file.want))
		for _, row := range rows[1:] {
			for i := range sums {
				n, err := strconv.Atoi(row[file.first+i])
				if err != nil {
					t.Fatal(err)
				}
				sums[i] += n
			}
			if center := row[file.first-1]; row[0] != day || center != "" && center != "'=IT" {
				t.Fatalf("%s: %q", file.path, row)
			}
		}
		if !slices.Equal(sums, file.want) || rows[0][file.first] != "Messages" {
			t.Errorf("%s: %v, want %v of %q", file.path, sums, file.want, rows[0])
		}
	}
}
