package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"intumwa/configs"
	"intumwa/dispatcher"
	"intumwa/dispatcher/core"
	"intumwa/internal/postgres"
	"intumwa/internal/queue"
	"intumwa/messages/outbox"
	"intumwa/messages/rerouting"
	"intumwa/sms"
)

type adminStatusCmd struct{}

// adminCheck is one line of the status.
type adminCheck struct {
	Check   string `json:"check"`
	OK      bool   `json:"ok"`
	Found   string `json:"found"`
	Runbook string `json:"runbook"` // "" when it is ok
}

type adminStatus []adminCheck

// human prints a table with one line per check.
func (s adminStatus) human(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, c := range s {
		state := "ok"
		if !c.OK {
			state = "ATTENTION"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", state, c.Check, sms.Printable(c.Found))
		if c.Runbook != "" {
			_, _ = fmt.Fprintf(t, "\t\t%s\n", c.Runbook)
		}
	}
	return t.Flush()
}

// Runbooks of failed checks.
const (
	pageStore   = "docs/runbooks/database-down.md"
	pageDisk    = "docs/runbooks/archive-and-disk.md"
	pageStandby = "docs/runbooks/standby-missing.md"
	pageClock   = "docs/runbooks/clock.md"
	pageCare    = "docs/runbooks/database-care.md"
	pageSchema  = "docs/upgrade.md"
	pageRedis   = "docs/runbooks/redis-down.md"
	pageGateway = "docs/runbooks/gateway-down.md"
	pageLink    = "docs/runbooks/link-down.md"
	pageBroken  = "docs/runbooks/link-broken.md"
	pageQueue   = "docs/runbooks/queue-age.md"
	pageCloses  = "docs/runbooks/carrier-closes.md"
)

// Thresholds of attention.
const (
	statusDue = time.Minute // age of a due message, as in the alert QueueAge
)

// add adds a line, with the page if err is not nil.
func (s *adminStatus) add(check, found, page string, err error) {
	line := adminCheck{Check: check, OK: err == nil, Found: found}
	if err != nil {
		line.Found, line.Runbook = strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", ";")), " "), page
	}
	*s = append(*s, line)
}

// Run checks the stores, the standby, the archive, the dispatchers, the links and the queue. It prints every check,
// then fails if one needs attention.
func (adminStatusCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	config, err := p.config()
	if err != nil {
		return err
	}
	o := &operator{program: p, config: config}
	var status adminStatus
	if o.pool, err = o.open(ctx, postgres.Options{MaxConns: adminConnections}); err != nil {
		status.add("postgresql", "", pageStore, err)
	} else {
		defer o.pool.Close()
		status.database(ctx, o)
	}
	limited, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	found, err := tryRedis(limited, config)
	status.add("redis", found, pageRedis, err)
	attention := 0
	for _, c := range status {
		if !c.OK {
			attention++
		}
	}
	if err = a.print(p.stdout, status); err == nil && attention > 0 {
		err = fmt.Errorf("%d of %d checks need attention", attention, len(status))
	}
	return err
}

func (s *adminStatus) database(ctx context.Context, o *operator) {
	var found string
	err := o.pool.QueryRow(ctx, `SELECT current_setting('server_version') || CASE WHEN pg_is_in_recovery()
		THEN ', a standby' ELSE ', the primary' END`).Scan(&found)
	if err == nil && strings.HasSuffix(found, "standby") {
		err = errors.New(found + ": it cannot be written to")
	}
	s.add("postgresql", found, pageStore, err)
	if err != nil {
		return
	}
	err = postgres.TryCommit(ctx, o.pool, commitPatience)
	page := pageStore
	switch {
	case errors.Is(err, postgres.ErrStandbyAway):
		page = pageStandby
	case postgres.SQLState(err) == diskFull:
		page = pageDisk
	}
	s.add("commit", "ends", page, err)
	found, err = standbyOf(ctx, o)
	s.add("standby", found, pageStandby, err)
	found, err = archiveOf(ctx, o)
	s.add("archive", found, pageDisk, err)
	s.care(ctx, o)
	err = postgres.ReadClock(ctx, o.pool)
	ahead := postgres.Ahead()
	if err == nil && ahead.Abs() > clockTolerance {
		err = fmt.Errorf("this machine's clock is %v ahead of PostgreSQL's: one of the two is wrong",
			ahead.Round(time.Millisecond))
	}
	s.add("clock", "this machine's is PostgreSQL's", pageClock, err)
	if err = postgres.Current(ctx, o.pool); err != nil {
		s.add("schema", "", pageSchema, err)
		return
	}
	s.add("schema", "this binary's", "", nil)
	s.gateway(ctx, o)
}

// care checks what stops PostgreSQL one day.
func (s *adminStatus) care(ctx context.Context, o *operator) {
	health, err := postgres.ReadHealth(ctx, o.pool)
	if err != nil {
		s.add("xid age", "", pageCare, err)
		return
	}
	for _, c := range health.Checks() {
		var bad error
		if c.Bad {
			bad = errors.New(c.Found)
		}
		s.add(c.Check, c.Found, pageCare, bad)
	}
}

// diskFull is the SQLSTATE of a full disk.
const diskFull = "53100"

// standbyOf lists the standbys. It returns an error if one is required and commits wait for none.
func standbyOf(ctx context.Context, o *operator) (found string, err error) {
	alone, err := postgres.Unsafe(ctx, o.pool)
	if err == nil && alone != "" && o.config.Database.RequireStandby {
		err = fmt.Errorf("database.require_standby does not hold: %s", alone)
	}
	if err != nil {
		return "", err
	}
	list, err := postgres.Standbys(ctx, o.pool)
	if err != nil {
		return "", err
	}
	texts := make([]string, len(list))
	for i, standby := range list {
		if texts[i] = fmt.Sprintf("%s (%s), %v behind", standby.Name, standby.Sync,
			standby.Lag.Round(time.Millisecond)); standby.Sync == "" {
			texts[i] = "one that only a role in pg_monitor sees"
		}
	}
	switch {
	case alone == "" && len(list) == 0:
		return "", errors.New("commits wait for a standby, and none is connected")
	case alone == "":
		return "commits wait for it: " + strings.Join(texts, "; "), nil
	case len(list) == 0:
		return "none", nil
	}
	return "no commit waits for it: " + strings.Join(texts, "; "), nil
}

// archiveOf returns the age of the WAL archive. It returns an error if one is required and does not work.
func archiveOf(ctx context.Context, o *operator) (found string, err error) {
	archive, err := postgres.ReadArchive(ctx, o.pool)
	problem := archive.Problem()
	switch {
	case err != nil:
		return "", err
	case problem != "" && o.config.Database.RequireArchive:
		return "", errors.New(problem)
	case problem != "":
		return problem, nil
	case archive.Last == "":
		return "nothing is archived yet", nil
	}
	return fmt.Sprintf("%s, %v ago", archive.Last, archive.Age.Round(time.Second)), nil
}

// gateway checks the dispatchers, the links and the queue.
func (s *adminStatus) gateway(ctx context.Context, o *operator) {
	alive, err := core.Alive(ctx, o.pool)
	if err == nil && alive == 0 {
		err = errors.New("none is alive: no message is carried")
	}
	s.add("dispatchers", fmt.Sprintf("%d alive", alive), pageGateway, err)
	links, err := dispatcher.Links(ctx, o.pool)
	if err == nil && len(links) == 0 {
		err = errors.New("no dispatcher has announced one")
	}
	if err != nil {
		s.add("links", "", pageLink, err)
	}
	bound := 0
	for _, link := range links {
		page := pageLink
		switch {
		case link.RetiredTo != nil: // it carries nothing new; its line says so
			continue
		case link.Broken:
			page = pageBroken
		case link.State == "bound":
			if bound++; link.SendersBlocked == 0 {
				continue
			}
			page = pageBroken
		}
		why := fmt.Sprintf("%s since %s", link.State, link.Since.UTC().Format(time.RFC3339))
		if link.LastError != "" {
			why += ": " + link.LastError
		}
		s.add("link "+link.Link, "", page, errors.New(why))
	}
	if bound > 0 {
		s.add("links", fmt.Sprintf("%d of %d bound", bound, len(links)), "", nil)
	}
	s.retired(ctx, o)
	backlogs, err := outbox.New(o.pool).Backlogs(ctx)
	if err != nil {
		s.add("waiting", "", pageQueue, err)
	}
	for _, b := range backlogs {
		lane := queue.Lane(b.Lane)
		found := fmt.Sprintf("%d messages, the oldest accepted at %s, due for %v", b.Messages,
			b.Oldest.UTC().Format(time.RFC3339), b.Due.Round(time.Second))
		var late error
		if lane == queue.Single && b.Due > statusDue {
			late = errors.New(found)
		}
		s.add(fmt.Sprintf("waiting %s %s", b.Carrier, lane), found, pageQueue, late)
	}
	if len(backlogs) == 0 && err == nil {
		s.add("waiting", "nothing", "", nil)
	}
	if all, late, err := o.senders().WaitingRegistrations(ctx); all > 0 || err != nil {
		// a carrier's delay is no failure of the gateway
		s.add("senders", fmt.Sprintf("%d wait for a carrier, %d of them for more than a week (admin sender carrier "+
			"list --waiting)", all, late), pageStore, err)
	}
}

// retired adds a line for each retired carrier. One whose successor is not configured needs attention: its numbers are
// refused.
func (s *adminStatus) retired(ctx context.Context, o *operator) {
	list, err := rerouting.Retirements(ctx, o.pool)
	if err != nil {
		s.add("retired", "", pageStore, err)
	}
	last := rerouting.Successors(list)
	for _, r := range list {
		found, to := fmt.Sprintf("since %s; no carrier takes over", r.At.UTC().Format(time.RFC3339)), last[r.Carrier]
		var wrong error
		if to != "" {
			found = fmt.Sprintf("since %s; %s takes over", r.At.UTC().Format(time.RFC3339), to)
			if !slices.ContainsFunc(o.config.Carriers, func(c configs.Carrier) bool { return c.Name == to }) {
				wrong = errors.New(found + ", which the configuration does not have: the numbers are refused")
			}
		}
		s.add("retired "+r.Carrier, found, pageCloses, wrong)
	}
}
