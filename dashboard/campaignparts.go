package dashboard

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

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
	partsEvery    = 5 * time.Second
	partsAtOnce   = 20          // campaigns per round, one part each
	takenFor      = time.Minute // longer than intake takes to accept a part
	takenAgain    = 10 * time.Second
	partsPatience = 50 * time.Second // for one part
)

// nextPart returns the number of recipients in a campaign's next part, and in the parts after it.
func nextPart(awaited int) (size, left int) {
	size = min(partSize, awaited)
	return size, awaited - size
}

// sendPart sends the part after the first sent recipients, and returns how many are left.
func (d *Dashboard) sendPart(ctx context.Context, p *accounts.Principal, c *draft, sent, awaited int, at time.Time) (left int, err error) {
	size, left := nextPart(awaited)
	recipients, err := d.recipients(ctx, c, sent, size)
	if err != nil {
		return awaited, err
	}
	if len(recipients) < size {
		return awaited, fmt.Errorf("campaign %s has %d recipients from %d on, not %d", c.ID, len(recipients), sent, size)
	}
	name := "dashboard-campaign-" + c.ID.String() + "-" + strconv.Itoa(sent)
	_, err = d.rooms.Intake.SendBatch(ctx, p, intake.Batch{Name: c.Name, Schedule: intake.Schedule{SendAt: at}, Sender: c.Sender,
		Template: sms.ParseColumns(c.Template), Recipients: recipients, Part: &intake.Part{Of: c.ID, Further: sent > 0, Awaited: left},
		Key: &intake.Key{Name: name, Request: sha256.Sum256([]byte(name))}}) // with the key, limits on repeated texts count it once
	if err != nil {
		return awaited, err
	}
	return left, nil
}

// parted releases a campaign after an accepted part, and deletes it after the last.
func (d *Dashboard) parted(ctx context.Context, c *draft, left int) error {
	if left == 0 {
		return d.dropDraft(ctx, c.ID)
	}
	return d.giveBack(ctx, c, true, 0, "")
}

// sentOf returns a campaign's batch without its counts; nil if nothing was sent.
func (d *Dashboard) sentOf(ctx context.Context, company sms.CompanyID, id ulid.ULID) (*messages.BatchRecord, error) {
	batch, err := d.counter.Uncounted(ctx, company, id)
	switch {
	case errors.Is(err, messages.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &batch, nil
}

// runParts sends the further parts of campaigns until ctx ends.
func (d *Dashboard) runParts(ctx context.Context) {
	for ctx.Err() == nil {
		more, err := d.sendParts(ctx)
		if err != nil && ctx.Err() == nil {
			d.log.Error("campaigns could not be sent further; trying again", "event", "campaigns_not_sent", "error", err)
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-d.partsWake:
		case <-time.After(partsEvery):
		}
	}
}

// wakeParts wakes runParts.
func (d *Dashboard) wakeParts() {
	select {
	case d.partsWake <- struct{}{}:
	default:
	}
}

// sendParts sends one part each of some campaigns, and reports whether more may be due.
func (d *Dashboard) sendParts(ctx context.Context) (more bool, err error) {
	due, err := postgres.All(ctx, d.rooms.Pool, "looking for campaigns", scanDraft,
		selectDraft+` where taken_until <= now() and paused = '' order by taken_until limit $1`, partsAtOnce)
	if err != nil {
		return false, err
	}
	for i := range due {
		went, failed := d.further(ctx, &due[i])
		more, err = more || went, errors.Join(err, failed)
	}
	return more, err
}

// further sends the next part of a campaign that has begun and that no other process holds. more reports whether
// another part may follow.
func (d *Dashboard) further(ctx context.Context, c *draft) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, partsPatience)
	defer cancel()
	batch, err := d.sentOf(ctx, sms.CompanyID(c.Company), c.ID)
	switch {
	case err != nil:
		return false, err
	case batch == nil: // the unknown outcome of its first part was a refusal
		return false, nil
	case batch.Awaited == 0: // cancelled, or a process died before it deleted the campaign
		return false, d.dropDraft(ctx, c.ID)
	}
	if taken, err := d.take(ctx, c, false); err != nil || !taken {
		return false, err
	}
	if batch, err = d.sentOf(ctx, sms.CompanyID(c.Company), c.ID); err != nil || batch == nil { // another process may have sent a part
		return false, err
	}
	left := batch.Awaited
	p, err := d.rooms.Accounts.PrincipalOf(ctx, batch.UserID)
	if err == nil && left > 0 {
		if p.Company == nil || p.Company.ID != c.Company {
			err = intake.RefuseNoCompany
		} else {
			left, err = d.sendPart(ctx, p, c, batch.Recipients, left, batch.SendAt)
		}
	}
	back := context.WithoutCancel(ctx)
	refusal, refused := errors.AsType[sms.Refusal](err)
	switch {
	case refused:
		d.log.Info("a campaign is paused", "event", "campaign_paused", "batch", c.ID.String(), "company_id", c.Company, "reason", refusal.Reason)
		return false, d.giveBack(back, c, true, 0, refusal.Reason)
	case err != nil:
		return false, errors.Join(err, d.giveBack(back, c, true, takenAgain, ""))
	}
	return left > 0, d.parted(back, c, left)
}

// continueCampaign is POST /batches/:id/continue: the user has fixed the reason for the pause.
func (d *Dashboard) continueCampaign(v *visit, t tenant) error {
	id := v.ulid("id")
	tag, err := d.rooms.Pool.Exec(v.ctx(), `update campaigns set paused = '' where ulid = $1 and company_id = $2`, uuid(id), t.Company.ID)
	if err != nil {
		return fmt.Errorf("continuing a campaign: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errNotFound
	}
	d.wakeParts()
	return v.redirect("/batches/"+id.String(), "flash.campaign.continue")
}

// sweepDrafts deletes drafts that were never sent and campaigns that were paused for too long. Their batches accept no
// further parts.
func (d *Dashboard) sweepDrafts(ctx context.Context) error {
	if _, err := d.rooms.Pool.Exec(ctx, `delete from campaigns where taken_until is null and created_at <= now() - $1::interval`, draftLife); err != nil {
		return fmt.Errorf("sweeping campaigns: %w", err)
	}
	old, err := postgres.All(ctx, d.rooms.Pool, "looking for old campaigns", scanDraft, selectDraft+` where created_at <= now() - $1::interval`, campaignLife)
	for i := range old {
		err = errors.Join(err, d.giveUp(ctx, &old[i]))
	}
	return err
}

// giveUp ends a campaign; sent messages are not affected.
func (d *Dashboard) giveUp(ctx context.Context, c *draft) error {
	batch, err := d.sentOf(ctx, sms.CompanyID(c.Company), c.ID)
	if err == nil && batch != nil {
		d.log.Warn("a campaign was not continued within a day; the rest is not sent", "event", "campaign_given_up", "batch", c.ID.String(), "company_id", c.Company, "recipients", batch.Awaited)
		err = d.counter.AwaitNoMore(ctx, messages.Queued{Company: c.Company, Batch: batch.Key})
	}
	if err != nil {
		return err
	}
	return d.dropDraft(ctx, c.ID)
}
