package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/oklog/ulid/v2"

	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/sms"
)

const (
	draftLife  = 12 * time.Hour // shorter than an idempotency key's, so that no draft can be sent twice
	draftsKept = 20             // drafts of a company
)

// draft is a checked campaign that the user has not sent yet. It is stored in the database, not on the page, so that
// exactly the checked campaign is sent.
type draft struct {
	ID         ulid.ULID
	Name       string
	Sender     string
	Template   string
	Recipients []intake.Recipient
}

func (c *draft) path() string { return "/campaigns/drafts/" + c.ID.String() }

// keepDraft stores a draft, new or changed, and deletes the company's oldest ones past draftsKept. A changed one has the same
// idempotency key: one that was sent at that moment is not sent a second time.
func (d *Dashboard) keepDraft(ctx context.Context, t tenant, made draft) error {
	recipients, err := json.Marshal(made.Recipients)
	if err == nil {
		err = pgx.BeginFunc(ctx, d.rooms.Pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `insert into campaign_drafts (ulid, company_id, name, sender, template, recipients) values ($1, $2, $3, $4, $5, $6)
				on conflict (ulid) do update set recipients = excluded.recipients`,
				pgtype.UUID{Bytes: made.ID, Valid: true}, int64(t.company()), made.Name, made.Sender, made.Template, recipients); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `delete from campaign_drafts where company_id = $1 and ulid in (
				select ulid from campaign_drafts where company_id = $1 order by created_at desc offset $2)`, int64(t.company()), draftsKept)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("keeping a campaign: %w", err)
	}
	return nil
}

// draftOf returns a company's draft; errNotFound for another company's, or one that is too old.
func (d *Dashboard) draftOf(ctx context.Context, company sms.CompanyID, id ulid.ULID) (found draft, err error) {
	found.ID = id
	var recipients []byte
	err = d.rooms.Pool.QueryRow(ctx, `select name, sender, template, recipients from campaign_drafts
		where ulid = $1 and company_id = $2 and created_at > now() - $3::interval`,
		pgtype.UUID{Bytes: id, Valid: true}, int64(company), draftLife).Scan(&found.Name, &found.Sender, &found.Template, &recipients)
	if errors.Is(err, pgx.ErrNoRows) {
		return found, errNotFound
	}
	if err == nil {
		err = json.Unmarshal(recipients, &found.Recipients)
	}
	if err != nil {
		return found, fmt.Errorf("reading a campaign: %w", err)
	}
	return found, nil
}

func (d *Dashboard) dropDraft(ctx context.Context, company sms.CompanyID, id ulid.ULID) error {
	if _, err := d.rooms.Pool.Exec(ctx, `delete from campaign_drafts where ulid = $1 and company_id = $2`, pgtype.UUID{Bytes: id, Valid: true}, int64(company)); err != nil {
		return fmt.Errorf("dropping a campaign: %w", err)
	}
	return nil
}

// sweepDrafts deletes drafts that are too old.
func (d *Dashboard) sweepDrafts(ctx context.Context) error {
	if _, err := d.rooms.Pool.Exec(ctx, `delete from campaign_drafts where created_at <= now() - $1::interval`, draftLife); err != nil {
		return fmt.Errorf("sweeping campaigns: %w", err)
	}
	return nil
}

// key returns the name of the idempotency key that the draft is sent with.
func (c *draft) key() string { return "dashboard-campaign-" + c.ID.String() }

// optedOut returns which recipients want no messages from the sender ID, by their place.
func (d *Dashboard) optedOut(ctx context.Context, company sms.CompanyID, c *draft) (map[int]bool, error) {
	pairs := make([]handsets.Pair, len(c.Recipients))
	for i, r := range c.Recipients {
		pairs[i] = handsets.Pair{CompanyID: int64(company), Number: r.Number, Sender: c.Sender}
	}
	return handsets.Barred(ctx, d.rooms.Pool, pairs)
}

// leaveOut is POST /campaigns/drafts/:draft/without: the draft keeps all recipients but those who have
// opted out. Nothing is sent: the user sees what is left, and what it costs.
func (d *Dashboard) leaveOut(v *visit, t tenant, made *draft) error {
	barred, err := d.optedOut(v.ctx(), t.company(), made)
	if err != nil {
		return err
	}
	if len(barred) == 0 || len(barred) == len(made.Recipients) {
		return v.redirect(made.path(), "")
	}
	var left []intake.Recipient
	for i, r := range made.Recipients {
		if !barred[i] {
			left = append(left, r)
		}
	}
	made.Recipients = left
	return v.done(d.keepDraft(v.ctx(), t, *made), made.path(), "flash.campaign.without")
}

// unsent is the handler of a page for the draft that the path names. A draft that was sent redirects to its batch.
func (d *Dashboard) unsent(page func(*visit, tenant, *draft) error) func(*visit, tenant) error {
	return func(v *visit, t tenant) error {
		made, err := v.draft(t)
		if err != nil {
			return err
		}
		answer, sent, err := d.rooms.Intake.Answered(v.ctx(), t.User.ID, made.key())
		switch {
		case err != nil:
			return err
		case !sent:
			return page(v, t, &made)
		}
		batch, err := batchOf(answer)
		return v.done(err, "/batches/"+batch.String(), "")
	}
}

// batchOf returns the batch of an answer of intake.
func batchOf(answer []byte) (ulid.ULID, error) {
	var accepted intake.BatchAccepted
	if err := json.Unmarshal(answer, &accepted); err != nil {
		return ulid.ULID{}, fmt.Errorf("reading the answer to a campaign: %w", err)
	}
	return accepted.BatchID, nil
}

// request returns the send of the draft, at a time or, if that is zero, at once. Its idempotency key belongs to the draft, so
// it is sent and charged once.
func (c *draft) request(at time.Time) intake.Batch {
	name := c.key()
	return intake.Batch{Name: c.Name, Schedule: intake.Schedule{SendAt: at}, Sender: c.Sender, Template: sms.ParseTemplate(c.Template), Recipients: c.Recipients,
		Key: &intake.Key{Name: name, Request: sha256.Sum256([]byte(name))}}
}
