package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/acts"
	"intumwa/dispatcher"
	"intumwa/messages"
	"intumwa/receipts"
)

type adminUnansweredCmd struct {
	List   adminUnansweredListCmd   `cmd:"" default:"withargs" help:"List them, and what receipts of no message name their numbers."`
	Send   adminUnansweredSendCmd   `cmd:"" help:"Send them again. The carrier may have them already."`
	Settle adminUnansweredSettleCmd `cmd:"" help:"Make them sent, failed or cancelled, as the carrier's records say."`
}

type adminUnanswered struct {
	ID               ulid.ULID  `json:"id"`
	MessageID        int64      `json:"message_id"`
	CompanyID        int64      `json:"company_id"`
	Carrier          string     `json:"carrier"`
	To               string     `json:"to"`
	CreatedAt        time.Time  `json:"created_at"`
	ExpiresAt        time.Time  `json:"expires_at"` // until then it can be sent again
	Receipts         int        `json:"receipts"`   // of no message, from any carrier, that name its number and came after it was accepted
	ReceiptCarrier   string     `json:"receipt_carrier"`
	ReceiptState     string     `json:"receipt_state"`
	ReceiptCarrierID string     `json:"receipt_carrier_id"`
	ReceiptAt        *time.Time `json:"receipt_at"`
}

// unansweredChoice says which unanswered messages are meant.
type unansweredChoice struct {
	Carrier  string `help:"Only this carrier's." placeholder:"NAME"`
	Receipts string `help:"Only messages whose number no receipt of an unknown message names (none), or one does (some), or all (any). When not given: none of those that are sent again, else any." enum:",none,some,any" default:""`
}

// each calls do with the messages that are meant, some at a time.
func (c *unansweredChoice) each(ctx context.Context, pool *pgxpool.Pool, after int64, do func([]adminUnanswered) (more bool, err error)) error {
	store := messages.New(pool)
	for {
		page, err := store.Unanswered(ctx, c.Carrier, after, listPage)
		if err != nil || len(page) == 0 {
			return err
		}
		sought := make([]receipts.Sought, len(page))
		for i, m := range page {
			sought[i] = receipts.Sought{Number: m.Number, Since: m.CreatedAt}
			after = m.ID
		}
		strays, err := receipts.Strays(ctx, pool, sought)
		if err != nil {
			return err
		}
		var meant []adminUnanswered
		for i, m := range page {
			stray := strays[i]
			if (c.Receipts == "none" && stray.Count > 0) || (c.Receipts == "some" && stray.Count == 0) {
				continue
			}
			shown := adminUnanswered{ID: m.ULID, MessageID: m.ID, CompanyID: m.CompanyID, Carrier: m.Carrier, To: string(m.Number),
				CreatedAt: m.CreatedAt, ExpiresAt: m.ExpiresAt, Receipts: stray.Count}
			if stray.Count > 0 {
				shown.ReceiptCarrier, shown.ReceiptState = stray.Latest.Carrier, stray.Latest.State
				shown.ReceiptCarrierID, shown.ReceiptAt = stray.Latest.CarrierID, &stray.Latest.At
			}
			meant = append(meant, shown)
		}
		if more, err := do(meant); err != nil || !more || len(page) < listPage {
			return err
		}
	}
}

type adminUnansweredListCmd struct {
	unansweredChoice
	After int64 `help:"Only those with larger message_ids: the next part." placeholder:"ID"`
	Limit int   `help:"How many at most." default:"1000"`
}

// Run lists messages that their carriers may have.
func (c *adminUnansweredListCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if c.Limit < 1 {
		return errors.New("--limit must be at least 1")
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		list := []adminUnanswered{} // [] in JSON, not null
		err := c.each(ctx, o.pool, c.After, func(some []adminUnanswered) (bool, error) {
			list = append(list, some...)
			return len(list) < c.Limit, nil
		})
		return list[:min(len(list), c.Limit)], err
	})
}

// unansweredDecision is what is decided of, by whom and why.
type unansweredDecision struct {
	ID []string `help:"One message, by its ULID; may be given several times." placeholder:"ULID"`
	unansweredChoice
	All    bool   `help:"Messages of all carriers, if none is named."`
	Reason string `required:"" help:"Why; it stays in the record of acts."`
}

type adminUnansweredDone struct {
	Messages int64 `json:"messages"` // that were sent again, or settled
	Passed   int64 `json:"passed"`   // that were not: answered meanwhile, or their validity is over
}

// decide calls do with the messages that are meant, of one carrier at a time. It records the act before the first and what
// came of it after the last.
func (c *unansweredDecision) decide(ctx context.Context, o *operator, act string, do func(pool *pgxpool.Pool, carrier string, ids []int64) (int, error)) (any, error) {
	if len(c.ID) == 0 && c.Carrier == "" && !c.All {
		return nil, errors.New("say which: --id, --carrier or --all")
	}
	wanted := make([]ulid.ULID, len(c.ID))
	for i, text := range c.ID {
		id, err := ulid.ParseStrict(strings.ToUpper(text))
		if err != nil {
			return nil, fmt.Errorf("%q is no ULID", text)
		}
		wanted[i] = id
	}
	if len(wanted) > 0 {
		c.Receipts = "any" // they are named
	}
	pool, err := o.busyPool(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	entry := acts.Entry{Act: act, Subject: "unanswered messages", After: map[string]any{"reason": c.Reason, "ids": c.ID, "carrier": c.Carrier, "receipts": c.Receipts}}
	if err := o.change(ctx, func(pgx.Tx) (acts.Entry, error) { return entry, nil }); err != nil {
		return nil, err
	}
	var done adminUnansweredDone
	found := 0
	err = c.each(ctx, pool, 0, func(some []adminUnanswered) (bool, error) {
		byCarrier := map[string][]int64{}
		for _, m := range some {
			if len(wanted) == 0 || slices.Contains(wanted, m.ID) {
				byCarrier[m.Carrier] = append(byCarrier[m.Carrier], m.MessageID)
			}
		}
		for carrier, ids := range byCarrier {
			n, err := do(pool, carrier, ids)
			if err != nil {
				return false, err
			}
			found += len(ids)
			done.Messages, done.Passed = done.Messages+int64(n), done.Passed+int64(len(ids)-n)
		}
		return true, nil
	})
	if err == nil && found < len(wanted) {
		err = fmt.Errorf("%d of these messages are not unanswered, or not any more", len(wanted)-found)
	}
	return done, errors.Join(err, o.change(ctx, func(pgx.Tx) (acts.Entry, error) {
		entry.Act += ".done"
		entry.After = done
		return entry, nil
	}))
}

type adminUnansweredSendCmd struct{ unansweredDecision }

// Run sends messages again that their carriers may have.
func (c *adminUnansweredSendCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if c.Receipts == "" { // what a receipt names has arrived: only who says so sends it again
		c.Receipts = "none"
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		return c.decide(ctx, o, "unanswered.send", func(pool *pgxpool.Pool, carrier string, ids []int64) (int, error) {
			sent, err := dispatcher.SendUnanswered(ctx, pool, messages.New(pool), carrier, ids, o.config.Messages.Validity)
			return len(sent), err
		})
	})
}

type adminUnansweredSettleCmd struct {
	As string `required:"" help:"sent: the carrier delivered it; failed: it did not, or nobody knows; cancelled: no carrier has it, and its credits come back." enum:"sent,failed,cancelled"`
	unansweredDecision
}

// Run makes messages final that their carriers may have.
func (c *adminUnansweredSettleCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	as := map[string]dispatcher.Outcome{"sent": dispatcher.WasSent, "failed": dispatcher.WasFailed, "cancelled": dispatcher.WasCancelled}[c.As]
	return a.run(ctx, p, func(o *operator) (any, error) {
		hooks := o.openWebhooks()
		return c.decide(ctx, o, "unanswered."+c.As, func(pool *pgxpool.Pool, carrier string, ids []int64) (int, error) {
			return dispatcher.SettleUnanswered(ctx, pool, messages.New(pool), hooks, carrier, ids, as, o.config.Billing.Refund.Is)
		})
	})
}

type adminUnmatchedCmd struct {
	Carrier string  `help:"Only this carrier's." placeholder:"NAME"`
	Since   instant `help:"Only those that came then or later: a time, a date, or 24h for a day ago." placeholder:"T"`
	Before  int64   `help:"Only those with smaller ids: the next part." placeholder:"ID"`
	Limit   int     `help:"How many at most, the latest first." default:"1000"`
}

type adminUnmatched struct {
	ID         int64     `json:"id"`
	ReceivedAt time.Time `json:"received_at"`
	Carrier    string    `json:"carrier"`
	Link       string    `json:"link"`
	CarrierID  string    `json:"carrier_id"`
	Number     string    `json:"number"` // as the carrier writes it
	State      string    `json:"state"`
	Error      string    `json:"error"`
}

// Run lists receipts of messages that are not known.
func (c *adminUnmatchedCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if c.Limit < 1 {
		return errors.New("--limit must be at least 1")
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		list := []adminUnmatched{} // [] in JSON, not null
		since := c.Since.moment()
		first, err := receipts.FirstSince(ctx, o.pool, since)
		if err != nil {
			return nil, err
		}
		for before := c.Before; len(list) < c.Limit; {
			page, next, err := receipts.Inbox(ctx, o.pool, before, listPage)
			if err != nil {
				return nil, err
			}
			for _, r := range page {
				if (c.Carrier == "" || r.Carrier == c.Carrier) && !r.At.Before(since) && len(list) < c.Limit {
					list = append(list, adminUnmatched{ID: r.ID, ReceivedAt: r.At, Carrier: r.Carrier, Link: r.Link, CarrierID: r.CarrierID,
						Number: r.Number, State: r.State, Error: r.Error})
				}
			}
			if before = next; next <= first {
				break
			}
		}
		return list, nil
	})
}
