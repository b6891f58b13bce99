package campaigns

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// A campaign is sent in parts: the first in the request, the others in the background, one after another, by any
// process. Only its batch records the progress. The transaction that accepts a part extends the batch by it, and only
// the next part fits. So each part is accepted and charged once, even if a process dies half-way, and a cancelled batch
// takes none.
const (
	partSize      = 1000
	takenFor      = time.Minute // longer than intake takes to accept a part
	takenAgain    = 10 * time.Second
	partsPatience = 50 * time.Second // for one part
)

// ErrTaken means that the campaign is being sent already.
var ErrTaken = errors.New("the campaign is being sent")

// ErrChanged means that the rows of the campaign are not those that its sums counted.
var ErrChanged = errors.New("the campaign has changed")

// Begin sends the first part of a campaign that sums counts, at a later time unless that is zero. The errors are
// [ErrTaken], [ErrChanged], a [sms.Refusal], and those of [intake.Intake.SendBatch]. After an unknown outcome the
// further parts follow if the first was accepted.
func (c *Campaigns) Begin(ctx context.Context, p *accounts.Principal, made *Campaign, sums Sums, at time.Time) error {
	if sums.Recipients > partSize { // intake sees only the first part
		balance, err := c.Ledger.Balance(ctx, made.Company)
		switch {
		case err != nil:
			return err
		case balance < int64(sums.Segments):
			return intake.RefuseCredits("batch", strconv.Itoa(sums.Segments))
		}
	}
	var begun bool // its first part had an unknown outcome, and may still be accepted
	var until time.Time
	err := c.Pool.QueryRow(ctx, `with was as (select ulid, taken_until is not null as begun from campaigns where ulid = $1
		for update)
		update campaigns c set taken_until = now() + $2::interval, unsent = false from was
		where c.ulid = was.ulid and c.paused = '' and (coalesce(c.taken_until <= now(), true) or c.unsent)
		returning was.begun, c.taken_until`, made.key(), takenFor).Scan(&begun, &until)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // the first of two clicks began it
		return ErrTaken
	case err != nil:
		return fmt.Errorf("taking a campaign: %w", err)
	}
	taken, err := c.Sums(ctx, made) // from now on nothing changes the rows
	if err == nil && taken != sums {
		err = ErrChanged
	}
	var first intake.Batch
	if err == nil {
		first, _, err = c.part(ctx, made, 0, sums.Recipients)
	}
	if err == nil {
		first.Schedule = intake.Schedule{SendAt: at}
		err = c.sendPart(ctx, p, first)
	}
	if err == nil {
		return c.parted(ctx, made, sums.Recipients-len(first.Recipients))
	}
	var back error
	if begun || errors.Is(err, intake.ErrOutcomeUnknown) {
		back = c.giveBack(ctx, made, 0, "")
	} else {
		back = c.draftAgain(ctx, made, until)
	}
	if back != nil {
		c.Log.Warn("a campaign could not be given back; it cannot be sent for a minute", "event", "campaign_not_given_back",
			"error", back)
	}
	return err
}

// part returns the part after the first sent recipients, and the N of its rows.
func (c *Campaigns) part(ctx context.Context, made *Campaign, sent, awaited int) (b intake.Batch, ns []int, err error) {
	size := min(partSize, awaited)
	b = intake.Batch{Name: made.Name, CostCenter: made.CostCenter, Sender: made.Sender,
		Template: sms.ParseColumns(made.Template),
		Part:     &intake.Part{Of: made.ID, Further: sent > 0, Awaited: awaited - size}}
	b.Recipients, ns, err = c.recipients(ctx, made, sent, size)
	if err == nil && len(ns) < size {
		err = fmt.Errorf("campaign %s has %d recipients from %d on, not %d", made.ID, len(ns), sent, size)
	}
	name := "dashboard-campaign-" + made.ID.String() + "-" + strconv.Itoa(sent)
	// with the key, limits on repeated texts count it once
	b.Key = &intake.Key{Name: name, Request: sha256.Sum256([]byte(name))}
	return b, ns, err
}

func (c *Campaigns) sendPart(ctx context.Context, p *accounts.Principal, part intake.Batch) error {
	_, err := c.Intake.SendBatch(intake.WithChannel(ctx, messages.Page), p, part)
	return err
}

// sendFurther sends the next part of a batch that p sends, and returns how many recipients are left. It leaves out
// those because of whom intake refuses the part: one must not stop the others.
func (c *Campaigns) sendFurther(ctx context.Context, p *accounts.Principal, made *Campaign,
	batch *messages.BatchRecord) (left int, err error) {
	for batch.Awaited > 0 {
		part, ns, err := c.part(ctx, made, batch.Recipients, batch.Awaited)
		if err != nil {
			return batch.Awaited, err
		}
		part.Schedule = intake.Schedule{SendAt: batch.SendAt}
		err = c.sendPart(ctx, p, part)
		one, because := errors.AsType[*intake.AtRecipient](err)
		if !because {
			return part.Part.Awaited, err
		}
		out := map[int]sms.Refusal{one.Index: one.Refusal}
		if !one.Limit { // it names the first of them
			if out = c.Intake.Unsendable(p, &part); len(out) == 0 {
				return batch.Awaited, fmt.Errorf("campaign %s: who can be sent to changes just now", made.ID)
			}
		}
		if err := c.leaveOut(ctx, made, batch, ns, out); err != nil {
			return batch.Awaited, err
		}
	}
	return 0, nil
}

// leaveOut leaves recipients out of the further parts of a batch: out has them by their place in ns, the N of their
// rows.
func (c *Campaigns) leaveOut(ctx context.Context, made *Campaign, batch *messages.BatchRecord, ns []int,
	out map[int]sms.Refusal) error {
	var rows []int
	var reasons []string
	counts := map[string]int{}
	for i, refusal := range out {
		rows, reasons = append(rows, ns[i]), append(reasons, refusal.Reason)
		counts[refusal.Reason]++
	}
	return pgx.BeginFunc(ctx, c.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update campaign_rows r set fault = o.reason from unnest($2::int[], $3::text[]) o(n, reason)
			where r.campaign = $1 and r.n = o.n`, made.key(), rows, reasons); err != nil {
			return fmt.Errorf("leaving out rows of a campaign: %w", err)
		}
		return batch.LeaveOut(ctx, tx, counts)
	})
}

// parted releases a campaign after an accepted part, and ends it after the last.
func (c *Campaigns) parted(ctx context.Context, made *Campaign, left int) error {
	if left > 0 {
		return c.giveBack(ctx, made, 0, "")
	}
	return c.end(ctx, made)
}

// end deletes a campaign whose parts are sent. Rows that were left out stay for its [Life]: the company needs their
// numbers.
func (c *Campaigns) end(ctx context.Context, made *Campaign) error {
	tag, err := c.Pool.Exec(ctx, `update campaigns set taken_until = 'infinity' where ulid = $1
		and exists (select from campaign_rows where campaign = $1 and fault is not null)`, made.key())
	if err == nil && tag.RowsAffected() > 0 {
		_, err = c.Pool.Exec(ctx, `delete from campaign_rows where campaign = $1 and fault is null`, made.key())
	}
	if err != nil {
		return fmt.Errorf("ending a campaign: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return c.Delete(ctx, made.ID)
	}
	return nil
}

// giveBack ends the taking of a campaign that has begun: it may be taken again after a while, unless it is paused with
// a reason.
func (c *Campaigns) giveBack(ctx context.Context, made *Campaign, after time.Duration, paused string) error {
	if _, err := c.Pool.Exec(ctx, `update campaigns set taken_until = now() + $2::interval, paused = $3 where ulid = $1`,
		made.key(), after, paused); err != nil {
		return fmt.Errorf("giving a campaign back: %w", err)
	}
	return nil
}

// draftAgain ends the taking, until a time, of a campaign of which nothing was sent. If this process is late, another
// has taken it, and may have begun it.
func (c *Campaigns) draftAgain(ctx context.Context, made *Campaign, until time.Time) error {
	if _, err := c.Pool.Exec(ctx, `update campaigns set taken_until = null where ulid = $1 and taken_until = $2`,
		made.key(), until); err != nil {
		return fmt.Errorf("making a draft of a campaign again: %w", err)
	}
	return nil
}

// SendNext sends the next part of the campaign that has waited longest for it, and reports whether one was due. The
// campaign then waits behind the others, whatever came of it: one that cannot go on delays no other.
func (c *Campaigns) SendNext(ctx context.Context) (found bool, err error) {
	due, err := postgres.All(ctx, c.Pool, "taking a campaign", scanCampaign,
		`update campaigns set taken_until = now() + $1::interval, unsent = false
		where ulid = (select ulid from campaigns where taken_until <= now() and paused = '' order by taken_until limit 1
		for update skip locked)
		returning `+campaignColumns, takenFor)
	if err != nil || len(due) == 0 {
		return false, err
	}
	if err = c.further(ctx, &due[0]); err != nil {
		err = errors.Join(err, c.giveBack(context.WithoutCancel(ctx), &due[0], takenAgain, ""))
	}
	return true, err
}

// further sends the next part of a campaign that this process has taken. One that cannot go on now stays taken for its
// minute.
func (c *Campaigns) further(ctx context.Context, made *Campaign) error {
	ctx, cancel := context.WithTimeout(ctx, partsPatience)
	defer cancel()
	batch, err := c.batches.Uncounted(ctx, sms.CompanyID(made.Company), made.ID)
	switch {
	case errors.Is(err, messages.ErrNotFound):
		// the first part's outcome is unknown, and it was a refusal or is not decided yet
		return c.letBegin(ctx, made)
	case err != nil:
		return err
	case batch.Awaited == 0: // cancelled, or a process died before it ended the campaign
		return c.end(ctx, made)
	}
	p, err := c.Holders.PrincipalOf(ctx, made.person(&batch))
	switch {
	case errors.Is(err, accounts.ErrNotFound) || err == nil && (p.Company == nil || p.Company.ID != made.Company):
		err = intake.RefusePersonLeft
	case err != nil:
		return err
	}
	left := batch.Awaited
	if err == nil {
		left, err = c.sendFurther(ctx, p, made, &batch)
	}
	back := context.WithoutCancel(ctx)
	refusal, refused := errors.AsType[sms.Refusal](err)
	switch {
	case refused:
		c.Log.Info("a campaign is paused", "event", "campaign_paused", "batch", made.ID.String(), "company_id", made.Company,
			"reason", refusal.Reason)
		if slices.Contains(intake.PersonRefusals, refusal) { // it goes on when the person may send again
			return nil
		}
		return c.giveBack(back, made, 0, refusal.Reason)
	case err != nil:
		return err
	}
	return c.parted(back, made, left)
}

// letBegin lets people send the first part again, while this process seems to hold the campaign. The part's key, and
// the batch that it makes, accept it only once.
func (c *Campaigns) letBegin(ctx context.Context, made *Campaign) error {
	if _, err := c.Pool.Exec(ctx, `update campaigns set unsent = true where ulid = $1`, made.key()); err != nil {
		return fmt.Errorf("letting a campaign begin again: %w", err)
	}
	return nil
}

// person returns the id of the user who sends the next part.
func (made *Campaign) person(batch *messages.BatchRecord) int64 {
	return cmp.Or(made.continuedBy, batch.UserID)
}

// Paused returns the reason why the next part of a campaign is not sent; "" if it is.
func (c *Campaigns) Paused(ctx context.Context, made *Campaign, batch *messages.BatchRecord) (
	reason string, err error) {
	if made.paused != "" {
		return made.paused, nil
	}
	u, err := c.People.UserByID(ctx, made.person(batch))
	if err != nil && !errors.Is(err, accounts.ErrNotFound) { // without the user, u has no company
		return "", err
	}
	refusal, _ := intake.RefusePerson(u, made.Company)
	return refusal.Reason, nil
}

// Continue ends a campaign's pause: the user, who may send for the company, sends the further parts. The error is
// [ErrNotFound] or [messages.ErrNotFound] when the company has no such campaign.
func (c *Campaigns) Continue(ctx context.Context, company sms.CompanyID, id ulid.ULID, user int64) error {
	made, err := c.Get(ctx, company, id)
	if err != nil {
		return err
	}
	batch, err := c.batches.Uncounted(ctx, company, id)
	if err != nil {
		return err
	}
	switch reason, err := c.Paused(ctx, &made, &batch); {
	case err != nil:
		return err
	case reason == "": // a COMMIT without an answer may have ended the pause
		return postgres.Confirmed(ctx, c.Pool, func(pgx.Tx) error { return nil })
	}
	if _, err := c.Pool.Exec(ctx, `update campaigns set paused = '', continued_by = $2, taken_until = now()
		where ulid = $1`, made.key(), user); err != nil {
		return fmt.Errorf("continuing a campaign: %w", err)
	}
	return nil
}

// Sweep deletes campaigns that were never sent and those that were paused for too long. Their batches accept no further
// parts.
func (c *Campaigns) Sweep(ctx context.Context) error {
	if _, err := c.Pool.Exec(ctx, `delete from campaigns where taken_until is null and created_at <= now() - $1::interval`,
		draftLife); err != nil {
		return fmt.Errorf("sweeping campaigns: %w", err)
	}
	old, err := postgres.All(ctx, c.Pool, "looking for old campaigns", scanCampaign, selectCampaign+
		` where created_at <= now() - $1::interval`, Life)
	for i := range old {
		err = errors.Join(err, c.giveUp(ctx, &old[i]))
	}
	return err
}

// notContinued is why a batch left out what a paused campaign had not sent within its [Life].
const notContinued = "not_continued"

// giveUp ends a campaign; sent messages are not affected.
func (c *Campaigns) giveUp(ctx context.Context, made *Campaign) error {
	batch, err := c.batches.Uncounted(ctx, sms.CompanyID(made.Company), made.ID)
	switch {
	case errors.Is(err, messages.ErrNotFound): // nothing was sent, unless the first part is being sent just now
		if _, err := c.Pool.Exec(ctx, `delete from campaigns where ulid = $1
			and (taken_until <= now() or taken_until = 'infinity' or unsent)`, made.key()); err != nil {
			return fmt.Errorf("giving up a campaign: %w", err)
		}
		return nil
	case err != nil:
		return err
	case batch.Awaited > 0:
		c.Log.Warn("a campaign was not continued within a day; the rest is not sent", "event", "campaign_given_up", "batch",
			made.ID.String(), "company_id", made.Company, "recipients", batch.Awaited)
		if err := pgx.BeginFunc(ctx, c.Pool, func(tx pgx.Tx) error {
			return batch.LeaveOut(ctx, tx, map[string]int{notContinued: batch.Awaited})
		}); err != nil { // perhaps a last part was accepted meanwhile: the next sweep looks again
			return err
		}
	}
	return c.Delete(ctx, made.ID)
}
