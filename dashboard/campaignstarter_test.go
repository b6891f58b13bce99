package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/internal/testenv"
)

// TestCampaignOfItsCompany: a campaign pauses, with a reason in words, while the person who sends it may not. It goes
// on when they may again, or in the name of another person who continues it.
func TestCampaignOfItsCompany(t *testing.T) {
	type state struct {
		w       *world
		company accounts.Company
		starter people.User
	}
	setRole := func(s state, role accounts.Role) error {
		_, err := s.w.people.SetRole(context.Background(), s.company.ID, s.starter.ID, role)
		return err
	}
	disable := func(s state, disabled bool) error {
		_, _, err := s.w.people.SetUser(context.Background(), s.starter.ID, people.UserChange{Disabled: &disabled})
		return err
	}
	for name, test := range map[string]struct {
		change, back func(state) error
		recipients   int
		reason       string
	}{
		"disabled": {func(s state) error { return disable(s, true) }, func(s state) error { return disable(s, false) }, 2500,
			"account of the person who sends it is disabled"},
		"demoted": {func(s state) error { return setRole(s, accounts.RoleReader) },
			func(s state) error { return setRole(s, accounts.RoleSender) }, 2500,
			"person who sends it may no longer send"},
		"removed": {func(s state) error { return setRole(s, "") }, nil, 2500,
			"person who sends it has left the company"},
		"removed at the last part": {func(s state) error { return setRole(s, "") }, nil, 1001,
			"person who sends it has left the company"},
	} {
		t.Run(name, func(t *testing.T) {
			w := stillWorld(t, nil)
			owner, company := w.merchant("aline", 3000)
			c, starter := w.person(company, accounts.RoleSender)
			reader, _ := w.person(company, accounts.RoleReader)
			s := state{w, company, starter}
			batch := "/batches/" + c.parts(test.recipients)
			if err := test.change(s); err != nil {
				t.Fatal(err)
			}
			w.sendAll()
			w.counts(1000, `select count(*) from messages`)
			page := owner.get(batch)
			owner.wants(page, http.StatusOK, fmt.Sprintf("Paused after 1,000 of %s messages.", owner.number(test.recipients)),
				test.reason, "Continue sending")
			if strings.Contains(page.body, "no_company") {
				t.Error("the page has a raw code")
			}
			if test.back != nil {
				if err := test.back(s); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(owner.get(batch).body, "Paused after") {
					t.Error("it is still paused")
				}
				w.later()
				w.sendOn()
				w.counts(2000, `select count(*) from messages`)
				if err := test.change(s); err != nil {
					t.Fatal(err)
				}
				w.sendAll()
				w.counts(2000, `select count(*) from messages`)
			}
			reader.wants(reader.post(batch+"/continue"), http.StatusForbidden)
			owner.wants(owner.post(batch+"/continue"), http.StatusSeeOther)
			if strings.Contains(owner.get(batch).body, "Paused after") {
				t.Error("it is paused after it was continued")
			}
			w.sendAll()
			w.counts(test.recipients, `select count(*) from messages`)
			w.counts(1, `select count(distinct user_id) from messages where user_id <> $1`, starter.ID)
			w.audited()
		})
	}
}

// TestNoRawCodes: a pause whose reason has no text of its own is still in words.
func TestNoRawCodes(t *testing.T) {
	w := stillWorld(t, nil)
	c, _ := w.merchant("aline", 1500)
	batch := "/batches/" + c.parts(1500)
	for _, reason := range []string{"no_company", "quiet_hours", "a_future_one"} {
		w.exec(`update campaigns set paused = $1`, reason)
		page := c.get(batch)
		c.wants(page, http.StatusOK, "Paused after 1,000 of 1,500 messages. It was refused.")
		if strings.Contains(page.body, reason) {
			t.Errorf("the page has %s", reason)
		}
	}
}

// TestCampaignStopsAtTheCommit: no part is accepted after the commit of the change that ends its starter's right to
// send.
func TestCampaignStopsAtTheCommit(t *testing.T) {
	w := stillWorld(t, nil)
	_, company := w.merchant("aline", 3000)
	c, starter := w.person(company, accounts.RoleSender)
	c.parts(2500)
	w.later()
	ended := make(chan struct{})
	if err := pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
		disabled := true
		if _, _, err := w.people.In(tx).SetUser(t.Context(), starter.ID, people.UserChange{Disabled: &disabled}); err != nil {
			return err
		}
		go func() { defer close(ended); w.sendOn() }()
		w.until("the part waits for the change", func() bool {
			return testenv.Blocked(t, w.pool)
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	<-ended
	w.counts(1000, `select count(*) from messages`)
	w.credits(company.ID, 2000)
}

// TestCampaignOfFormerAdministrator: being an administrator gives no right to send, so losing it pauses nothing.
func TestCampaignOfFormerAdministrator(t *testing.T) {
	w := stillWorld(t, nil)
	c, u, company := w.customer("aline", "DEMO", 1500)
	w.user("root@example.com", true)
	w.exec(`update users set administrator = true where id = $1`, u.ID)
	c.parts(1500)
	if _, _, err := w.people.SetUser(t.Context(), u.ID, people.UserChange{Demote: true}); err != nil {
		t.Fatal(err)
	}
	w.sendAll()
	w.credits(company.ID, 0)
	w.audited()
}

// TestCampaignsThatAreStuck: campaigns that cannot go on, however many and for whatever reason, delay no other.
func TestCampaignsThatAreStuck(t *testing.T) {
	const stuck = 25
	for name, fill := range map[string]string{
		"an unknown outcome that was a refusal": `insert into campaigns (ulid, company_id, name, sender, template,
			taken_until)
			select gen_random_uuid(), $1, 'x', 'DEMO', 'x', now() - interval '1 hour' from generate_series(1, $2)`,
		"no recipients left": `with stuck as (insert into campaigns (ulid, company_id, name, sender, template, taken_until)
				select gen_random_uuid(), $1, 'x', 'DEMO', 'x', now() - interval '1 hour' from generate_series(1, $2)
					returning ulid)
			insert into batches (ulid, company_id, user_id, kind, sender, recipients_count, item_count, awaited)
				select ulid, $1, (select min(id) from users), 'template', 'DEMO', 1, 1, 1000 from stuck`,
	} {
		t.Run(name, func(t *testing.T) {
			w := stillWorld(t, nil)
			c, company := w.merchant("aline", 1500)
			w.exec(fill, company.ID, stuck)
			c.parts(1500)
			w.until("the campaign is sent", func() bool {
				_, _ = w.campaigns.SendNext(t.Context())
				return w.count(`select count(*) from messages`) == 1500
			})
			w.credits(company.ID, 0)
		})
	}
}

// later makes every campaign due.
func (w *world) later() {
	w.t.Helper()
	w.exec(`update campaigns set taken_until = now() - interval '1 hour' where taken_until is not null`)
}

// number returns a number as English pages write it.
func (c *client) number(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
