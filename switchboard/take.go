package switchboard

import (
	"context"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/inbound/handsets"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/webhooks"
)

// take routes one message, or part of one.
func (b *Switchboard) take(ctx context.Context, w *work, m handsets.Inbound) error {
	if !m.Fits() {
		return w.mark(ctx, handsets.TooLong, 0, m.ID)
	}
	if m.Part == nil {
		if b.opts.Repeats > 0 {
			repeats, err := w.store.Repeats(ctx, &m, b.opts.Repeats)
			if err != nil {
				return err
			}
			if repeats {
				return b.repeated(ctx, w, &m)
			}
		}
		return b.deliver(ctx, w, []handsets.Inbound{m})
	}
	earlier, err := w.store.Parts(ctx, &m, b.opts.Assembly)
	if err != nil {
		return err
	}
	a := handsets.Assemble(m, earlier)
	switch {
	case a.Repeated:
		return b.repeated(ctx, w, &m)
	case len(a.Given) > 0:
		if err := w.mark(ctx, handsets.Incomplete, 0, a.Given...); err != nil {
			return err
		}
	}
	if a.Whole == nil {
		return w.store.Mark(ctx, handsets.Waiting, 0, m.ID)
	}
	return b.deliver(ctx, w, a.Whole)
}

// repeated drops a message that the carrier repeats. A STOP counts even so: it may be the second one, after a START.
func (b *Switchboard) repeated(ctx context.Context, w *work, m *handsets.Inbound) error {
	if err := w.mark(ctx, handsets.Duplicate, 0, m.ID); err != nil || (m.Part != nil && m.Part.Number != 1) {
		return err
	}
	c, err := b.read(ctx, w, m, handsets.Text([]handsets.Inbound{*m}))
	if err != nil || c.change != changeStop || c.company == 0 {
		return err
	}
	return b.obey(ctx, w, m, c)
}

// mark stores and counts the outcome of rows.
func (w *work) mark(ctx context.Context, outcome handsets.Outcome, message int64, ids ...int64) error {
	w.outcomes[outcome] += len(ids)
	return w.store.Mark(ctx, outcome, message, ids...)
}

// deliver gives a whole message, in parts, to its company.
func (b *Switchboard) deliver(ctx context.Context, w *work, parts []handsets.Inbound) error {
	ids := make([]int64, len(parts))
	last := &parts[0]
	for i := range parts {
		if ids[i] = parts[i].ID; parts[i].At.After(last.At) {
			last = &parts[i]
		}
	}
	text := handsets.Text(parts)
	c, err := b.read(ctx, w, &parts[0], text)
	if err != nil {
		return err
	}
	if c.company == 0 {
		if c.change != "" {
			w.changes[changeUnclear]++
		}
		return w.mark(ctx, handsets.Unrouted, 0, ids...)
	}
	m := handsets.Message{CompanyID: c.company, At: last.At, Carrier: last.Carrier, From: fromOf(last), To: last.Destination, Body: text, Parts: len(parts)}
	if m.ID, err = w.store.Insert(ctx, m); err != nil {
		return err
	}
	if err := w.mark(ctx, handsets.Routed, m.ID, ids...); err != nil {
		return err
	}
	w.events = append(w.events, webhooks.Event{CompanyID: m.CompanyID, MessageID: m.ID, Name: webhooks.Received, At: m.At, PhoneNumber: m.From,
		Data: webhooks.ReceivedData{InboundID: m.ID, From: m.From, To: m.To, Message: m.Body, ReceivedAt: webhooks.Time{Time: m.At}}})
	return b.obey(ctx, w, last, c)
}

// fromOf returns the sender's number, in E.164 if it is national.
func fromOf(m *handsets.Inbound) string {
	if number, ok := handsets.Number(m.Source); ok {
		return string(number)
	}
	return m.Source
}

// giveUp ends a part whose message was not completed. No company gets it, but if it begins with STOP it opts out.
func (b *Switchboard) giveUp(ctx context.Context, w *work, m *handsets.Inbound) error {
	if err := w.mark(ctx, handsets.Incomplete, 0, m.ID); err != nil || m.Part.Number != 1 {
		return err
	}
	c, err := b.read(ctx, w, m, m.Body)
	if err != nil || c.change == "" {
		return err
	}
	return b.obey(ctx, w, m, c)
}

// command is a message's company and its stop or start word.
type command struct {
	company int64  // 0: none
	change  string // changeStop, changeStart, or "" for none
	sender  string // to which the command applies; "": all senders of the company
}

// read finds a message's company and command.
func (b *Switchboard) read(ctx context.Context, w *work, m *handsets.Inbound, text *string) (c command, err error) {
	first, second := m.Words(text)
	switch {
	case first == "":
	case slices.Contains(b.opts.StopWords, first):
		c.change = changeStop
	case slices.Contains(b.opts.StartWords, first):
		c.change = changeStart
	}
	routes, err := w.store.RoutesFrom(ctx, m.Destination)
	if err != nil {
		return c, err
	}
	var route *handsets.Route
	if c.change != "" {
		route = routes.Named(m.Carrier, second)
	}
	if route == nil {
		route = routes.Find(m.Carrier, first)
	}
	users := b.accounts.In(w.tx)
	if route == nil {
		name := strings.TrimPrefix(strings.TrimSpace(m.Destination), "+")
		if !isSender(name) {
			return c, nil
		}
		owners, err := users.Namesakes(ctx, name, 0)
		if err != nil || len(owners) == 0 || slices.ContainsFunc(owners, func(o accounts.SenderRequest) bool { return o.CompanyID != owners[0].CompanyID }) {
			return c, err // of no company, or of another
		}
		c.company, c.sender = owners[0].CompanyID, owners[0].Name
		return c, nil
	}
	c.company, c.sender = route.CompanyID, route.Sender
	if c.change == "" || c.sender != "" {
		return c, nil
	}
	senders, err := users.SendersOf(ctx, c.company)
	if err != nil {
		return c, err
	}
	address := handsets.Address(m.Destination)
	for _, s := range senders {
		if second != "" && handsets.Word(s.Name) == second {
			c.sender = s.Name
			return c, nil
		}
		if handsets.Address(s.Name) == address {
			c.sender = s.Name
		}
	}
	return c, nil
}

// obey adds or removes an opt-out, and acknowledges a change.
func (b *Switchboard) obey(ctx context.Context, w *work, m *handsets.Inbound, c command) error {
	if c.change == "" {
		return nil
	}
	number, ok := handsets.Number(m.Source)
	if c.company == 0 || !ok { // no company can send to a foreign number
		w.changes[changeUnclear]++
		return nil
	}
	var changed int64
	var err error
	reply := b.opts.StopReply
	if c.change == changeStop {
		if err := b.accounts.In(w.tx).NoteOptOuts(ctx, c.company); err != nil {
			return err
		}
		changed, err = w.store.OptOut(ctx, sms.CompanyID(c.company), []handsets.OptOut{{Number: number, Sender: c.sender, Source: handsets.ByHandset}})
	} else {
		reply = b.opts.StartReply
		var sender *string
		if c.sender != "" {
			sender = &c.sender
		}
		changed, err = w.store.OptIn(ctx, sms.CompanyID(c.company), number, sender)
	}
	switch {
	case err != nil:
		return err
	case changed == 0:
		w.changes[changeNone]++
		return nil
	}
	w.changes[c.change]++
	return b.reply(ctx, w, m, number, reply)
}

// reply acknowledges a command by a message of the gateway, like a one-time code: it belongs to no company and is free.
// Its sender is the address that the handset wrote to.
func (b *Switchboard) reply(ctx context.Context, w *work, m *handsets.Inbound, number sms.Number, text string) error {
	if text == "" || b.opts.Route == nil {
		return nil
	}
	carrier, ok := b.opts.Route(number)
	if !ok {
		return nil
	}
	room, err := w.store.Reply(ctx, m, repliesMost, repliesWithin)
	if err != nil || !room {
		return err
	}
	sender := strings.TrimPrefix(strings.TrimSpace(m.Destination), "+")
	if !isSender(sender) {
		sender = b.opts.TestSender
	}
	encoding, segments := sms.Count(text)
	w.replies = append(w.replies, &messages.Message{ULID: ulid.Make(), Number: number, Sender: sender, Body: text,
		Encoding: encoding, Segments: segments, Carrier: carrier, Validity: b.opts.Validity})
	return nil
}

// isSender reports whether an address can be a sender: rule api 8.
func isSender(name string) bool {
	return len(name) >= 1 && len(name) <= 11 && strings.IndexFunc(name, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}
