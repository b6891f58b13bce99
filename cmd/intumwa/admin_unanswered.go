package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/messages/receipts"
	"intumwa/messages/rerouting"
	"intumwa/operations"
	"intumwa/sms"
)

type adminUnansweredCmd struct {
	List   adminUnansweredListCmd   `cmd:"" default:"withargs" help:"List them, with unmatched receipts that name their numbers."`
	Send   adminUnansweredSendCmd   `cmd:"" help:"Send them again. The carrier may have them already."`
	Settle adminUnansweredSettleCmd `cmd:"" help:"Make them sent, failed or cancelled, as the carrier says."`
}

type adminUnanswered struct {
	ID               ulid.ULID  `json:"id"`
	MessageID        int64      `json:"message_id"`
	CompanyID        int64      `json:"company_id"`
	Carrier          string     `json:"carrier"`
	To               string     `json:"to"`
	CreatedAt        time.Time  `json:"created_at"`
	ExpiresAt        time.Time  `json:"expires_at"` // last moment to send it again
	Receipts         int        `json:"receipts"`   // unmatched, from any carrier, for its number, since it was accepted
	ReceiptCarrier   string     `json:"receipt_carrier"`
	ReceiptState     string     `json:"receipt_state"`
	ReceiptCarrierID string     `json:"receipt_carrier_id"`
	ReceiptAt        *time.Time `json:"receipt_at"`
	ReceiptsMean     string     `json:"receipts_mean"` // sent, failed, unclear, none
}

// unansweredList is grouped for people by what the receipts mean.
type unansweredList []adminUnanswered

// human prints each group under its heading.
func (list unansweredList) human(w io.Writer) error {
	for _, group := range []struct{ mean, heading string }{
		{"sent", "receipts mean sent"}, {"failed", "receipts mean failed"}, {"unclear", "receipts are unclear"},
		{"none", "no receipt"},
	} {
		var some []adminUnanswered
		for _, m := range list {
			if m.ReceiptsMean == group.mean {
				some = append(some, m)
			}
		}
		if len(some) == 0 {
			continue
		}
		unit := "messages"
		if len(some) == 1 {
			unit = "message"
		}
		if _, err := fmt.Fprintf(w, "%s: %d %s\n", group.heading, len(some), unit); err != nil {
			return err
		}
		if err := printHuman(w, some); err != nil {
			return err
		}
	}
	return nil
}

// unansweredChoice selects unanswered messages.
type unansweredChoice struct {
	Carrier string `help:"Only this carrier's." placeholder:"NAME"`
}

// each calls do with the selected messages, in batches that may be empty. next is the largest message_id that was
// looked at, 0 at the end.
func (c *unansweredChoice) each(ctx context.Context, o *operator, pool *pgxpool.Pool, after int64,
	do func(list []adminUnanswered, next int64) (more bool, err error)) error {
	store := rerouting.New(pool)
	for {
		page, next, err := store.Unanswered(ctx, c.Carrier, after, listPage, o.config.Messages.Validity)
		if err != nil {
			return err
		}
		sought := make([]receipts.Sought, len(page))
		for i, m := range page {
			sought[i] = receipts.Sought{Number: m.Number, Since: m.CreatedAt}
		}
		strays, err := receipts.Strays(ctx, pool, sought)
		if err != nil {
			return err
		}
		var named []sms.Number // by some receipt
		for i := range page {
			if strays[i].Count > 0 {
				named = append(named, page[i].Number)
			}
		}
		shared := map[sms.Number]rerouting.Shared{}
		if len(named) > 0 {
			if shared, err = store.SharedNumbers(ctx, named); err != nil {
				return err
			}
		}
		list := make([]adminUnanswered, len(page))
		for i, m := range page {
			stray := strays[i]
			list[i] = adminUnanswered{ID: m.ULID, MessageID: m.ID, CompanyID: m.CompanyID, Carrier: m.Carrier,
				To:        string(m.Number),
				CreatedAt: m.CreatedAt, ExpiresAt: m.ExpiresAt, Receipts: stray.Count, ReceiptsMean: "none"}
			if stray.Count > 0 {
				list[i].ReceiptCarrier, list[i].ReceiptState = stray.Latest.Carrier, stray.Latest.State
				list[i].ReceiptCarrierID, list[i].ReceiptAt = stray.Latest.CarrierID, &stray.Latest.At
				list[i].ReceiptsMean = "unclear"
				all, several := shared[m.Number]
				if !several {
					all = rerouting.Shared{Messages: 1, Segments: m.Segments}
				}
				if mean := stray.Means(all.Messages, all.Segments); mean.Final() {
					list[i].ReceiptsMean = mean.String()
				}
			}
		}
		if more, err := do(list, next); err != nil || !more || next == 0 {
			return err
		}
		after = next
	}
}

type adminUnansweredListCmd struct {
	unansweredChoice
	Receipts string `help:"Only messages whose number no receipt of an unknown message names (none), or one does (some), or all (any)." enum:"none,some,any" default:"any"`
	After    int64  `help:"Only those with larger message_ids: the next part." placeholder:"ID"`
	Limit    int    `help:"How many at most." default:"1000"`
}

// unansweredWithin is how long list looks for messages.
const unansweredWithin = time.Second

// do lists messages that carriers may have without an answer.
func (c *adminUnansweredListCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.Limit < 1 {
		return nil, errors.New("--limit must be at least 1")
	}
	list := unansweredList{} // [] in JSON, not null
	start := time.Now()
	err := c.each(ctx, o, o.pool, c.After, func(some []adminUnanswered, next int64) (bool, error) {
		for _, m := range some {
			if c.Receipts == "any" || (m.Receipts > 0) == (c.Receipts == "some") {
				list = append(list, m)
			}
		}
		if len(list) < c.Limit && next != 0 && time.Since(start) > unansweredWithin {
			_, _ = fmt.Fprintf(o.stderr, "intumwa: there may be more; the next part: --after %d\n", next)
			return false, nil
		}
		return len(list) < c.Limit, nil
	})
	return list[:min(len(list), c.Limit)], err
}

// unansweredDecision is a decision with its reason.
type unansweredDecision struct {
	ID []string `help:"One message, by its ULID; may be given several times." placeholder:"ULID"`
	unansweredChoice
	All    bool   `help:"Messages of all carriers, if none is named."`
	Reason string `aliases:"note" help:"Why; it stays in the audit log."`
	DryRun bool   `help:"Print the result, and change nothing."`
}

type adminUnansweredDone struct {
	Messages int64 `json:"messages"` // sent again or settled
	// unchanged: answered meanwhile, expired, or its carrier is retired and no other takes it
	Passed int64             `json:"passed"`
	Left   int64             `json:"left"` // unchanged: their receipts contradict the decision
	DryRun bool              `json:"dry_run,omitempty"`
	Would  []adminUnanswered `json:"would,omitempty"` // dry run: the messages that would change
}

// human prints the counts, and for a dry run the messages.
func (d adminUnansweredDone) human(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "messages  %d\npassed    %d\nleft      %d\n", d.Messages, d.Passed, d.Left); err != nil ||
		!d.DryRun {
		return err
	}
	if _, err := fmt.Fprintln(w, "dry run: nothing was changed"); err != nil {
		return err
	}
	return unansweredList(d.Would).human(w)
}

// decide calls do with the selected messages, one carrier at a time. fits filters messages that are not selected by id.
func (c *unansweredDecision) decide(ctx context.Context, o *operator, fits func(adminUnanswered) bool,
	do func(operations.Actor, operations.Unanswered) ([]int64, error)) (any, error) {
	if len(c.ID) == 0 && c.Carrier == "" && !c.All {
		return nil, errors.New("name the messages: --id, --carrier or --all")
	}
	wanted := make([]ulid.ULID, len(c.ID))
	for i, text := range c.ID {
		id, err := ulid.ParseStrict(strings.ToUpper(text))
		if err != nil {
			return nil, fmt.Errorf("%q is no ULID", text)
		}
		wanted[i] = id
	}
	pool, err := o.busyPool(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	done := adminUnansweredDone{DryRun: c.DryRun}
	found := 0
	err = c.each(ctx, o, pool, 0, func(some []adminUnanswered, _ int64) (bool, error) {
		byCarrier := map[string][]int64{}
		for _, m := range some {
			switch named := slices.Contains(wanted, m.ID); {
			case named || len(wanted) == 0 && fits(m):
				byCarrier[m.Carrier] = append(byCarrier[m.Carrier], m.MessageID)
			case len(wanted) == 0:
				done.Left++
			}
		}
		for carrier, ids := range byCarrier {
			decided, err := do(o.by(pool), operations.Unanswered{Carrier: carrier, IDs: ids, Reason: c.Reason, DryRun: c.DryRun})
			if err != nil {
				return false, err
			}
			found += len(ids)
			done.Messages, done.Passed = done.Messages+int64(len(decided)), done.Passed+int64(len(ids)-len(decided))
			for _, m := range some {
				if c.DryRun && slices.Contains(decided, m.MessageID) {
					done.Would = append(done.Would, m)
				}
			}
		}
		return true, nil
	})
	if err == nil && found < len(wanted) {
		err = fmt.Errorf("%d of these messages are not unanswered, or not any more", len(wanted)-found)
	}
	return done, err
}

type adminUnansweredSendCmd struct {
	unansweredDecision
	Receipts string `help:"Only messages whose number no receipt of an unknown message names (none), or one does (some), or all (any)." enum:"none,some,any" default:"none"`
}

// do sends unanswered messages again.
func (c *adminUnansweredSendCmd) do(ctx context.Context, o *operator) (any, error) {
	fits := func(m adminUnanswered) bool { return c.Receipts == "any" || (m.Receipts > 0) == (c.Receipts == "some") }
	return c.decide(ctx, o, fits, func(by operations.Actor, u operations.Unanswered) ([]int64, error) {
		return by.SendUnanswered(ctx, u, o.config.Messages.Validity, takerOf(o.config))
	})
}

type adminUnansweredSettleCmd struct {
	As string `required:"" help:"sent: the carrier delivered it; failed: it did not, or this is unknown; cancelled: no carrier has it, and its credits come back." enum:"sent,failed,cancelled"`
	unansweredDecision
	Receipts string `help:"Only messages whose receipts mean what --as says (some), or that no receipt names (none), or both (fitting), or all, whatever receipts mean (any)." enum:"none,some,fitting,any" default:"fitting"`
}

// fits reports whether a message's receipts allow the decision.
func (c *adminUnansweredSettleCmd) fits(m adminUnanswered) bool {
	switch c.Receipts {
	case "any":
		return true
	case "none":
		return m.Receipts == 0
	case "some":
		return m.ReceiptsMean == c.As
	}
	return m.Receipts == 0 || m.ReceiptsMean == c.As
}

// do makes unanswered messages final.
func (c *adminUnansweredSettleCmd) do(ctx context.Context, o *operator) (any, error) {
	return c.decide(ctx, o, c.fits, func(by operations.Actor, u operations.Unanswered) ([]int64, error) {
		return by.SettleUnanswered(ctx, u, c.As, refunds[o.config.Billing.Refund])
	})
}

type adminUnmatchedCmd struct {
	Carrier string  `help:"Only this carrier's." placeholder:"NAME"`
	Since   instant `help:"Only those that came then or later: a time, a date, or 24h for a day ago." placeholder:"T"`
	Before  int64   `help:"Only those with smaller ids: the next part." placeholder:"ID"`
	Limit   int     `help:"How many at most, the latest first." default:"1000"`
}

// do lists receipts that match no message.
func (c *adminUnmatchedCmd) do(ctx context.Context, o *operator) (any, error) {
	since := c.Since.moment()
	first, err := receipts.FirstSince(ctx, o.pool, since)
	if err != nil {
		return nil, err
	}
	return collect(c.Before, c.Limit, func(before int64, _ int) ([]receipts.InboxReceipt, int64, error) {
		page, next, err := receipts.Inbox(ctx, o.pool, before, listPage) // a page may yield few rows
		if next <= first {
			next = 0
		}
		return page, next, err
	}, func(r receipts.InboxReceipt) any {
		if c.Carrier != "" && r.Carrier != c.Carrier || r.At.Before(since) {
			return nil
		}
		return object{{"id", r.ID}, {"received_at", r.At}, {"carrier", r.Carrier}, {"link", r.Link},
			{"carrier_id", r.CarrierID},
			{"number", r.Number}, // as the carrier writes it
			{"state", r.State}, {"error", r.Error}, {"unmarked", r.Unmarked}}
	})
}
