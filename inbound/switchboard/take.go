package switchboard

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts/senders"
	"intumwa/inbound/handsets"
	"intumwa/messages"
	"intumwa/smppserver/binds"
	"intumwa/sms"
	"intumwa/webhooks"
)

// take routes one message, or part of one. It returns false, and does nothing, if it cannot be known yet whether the
// carrier repeats an earlier one.
func (b *Switchboard) take(ctx context.Context, w *work, m handsets.Inbound) (done bool, err error) {
	if !m.Fits() {
		return true, w.mark(ctx, handsets.TooLong, 0, m.ID)
	}
	whole, given := []handsets.Inbound{m}, []handsets.Inbound(nil)
	repeats := handsets.Original
	if m.Part == nil {
		if b.opts.Repeats > 0 {
			repeats, err = w.store.Repeats(ctx, &m, b.opts.Repeats)
		}
	} else {
		var earlier []handsets.Inbound
		if earlier, err = w.store.Parts(ctx, &m, b.opts.Assembly); err == nil {
			var a handsets.Assembly
			a, repeats = handsets.Assemble(m, earlier)
			whole, given = a.Whole, a.Given
		}
	}
	switch {
	case err != nil:
		return false, err
	case repeats == handsets.Unknown:
		return false, nil
	case repeats == handsets.Repeated:
		return true, b.repeated(ctx, w, &m)
	case len(given) > 0:
		if err := b.deliver(ctx, w, given); err != nil {
			return false, err
		}
	}
	if whole != nil {
		return true, b.deliver(ctx, w, whole)
	}
	switch company, err := w.store.Begun(ctx, &m, lateWithin); {
	case err != nil:
		return false, err
	case company != 0: // the other parts were given up
		return true, b.deliver(ctx, w, []handsets.Inbound{m})
	}
	return true, w.store.Mark(ctx, handsets.Waiting, 0, m.ID)
}

// lateWithin is how long a part is taken for one of a message that was delivered without it: handsets reuse references.
const lateWithin = time.Hour

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

// deliver gives a message, in parts, to its company: whole, or what there is of it.
func (b *Switchboard) deliver(ctx context.Context, w *work, parts []handsets.Inbound) error {
	ids := make([]int64, len(parts))
	last := &parts[0]
	for i := range parts {
		if ids[i] = parts[i].ID; parts[i].At.After(last.At) {
			last = &parts[i]
		}
	}
	text := handsets.Text(parts)
	routed, unrouted, read := handsets.Routed, handsets.Unrouted, b.read
	if handsets.Partial(parts) {
		routed, unrouted = handsets.Incomplete, handsets.Incomplete
		if parts[0].Part.Number > 1 {
			read = b.readRest
		}
	}
	c, err := read(ctx, w, &parts[0], text)
	if err != nil {
		return err
	}
	if c.company == 0 {
		if c.change != "" {
			w.changes[changeUnclear]++
		}
		return w.mark(ctx, unrouted, 0, ids...)
	}
	data := webhooks.ReceivedData{To: last.Destination, Message: text}
	if _, national := sms.FromCarrier(last.Source); national && c.change != "" {
		data.OptOut, data.MoreText = c.change, c.more
	}
	m := handsets.Message{CompanyID: c.company, At: last.At, Carrier: last.Carrier, From: fromOf(last),
		To: last.Destination, Body: text, Parts: len(parts)}
	if err := b.follow(ctx, w, last, &c, &m); err != nil {
		return err
	}
	if m.ID, err = w.store.Insert(ctx, m); err != nil {
		return err
	}
	if err := w.mark(ctx, routed, m.ID, ids...); err != nil {
		return err
	}
	data.InboundID, data.From, data.ReceivedAt = m.ID, m.From, webhooks.Time{Time: m.At}
	w.events = append(w.events, webhooks.Event{CompanyID: m.CompanyID, MessageID: m.ID, Name: webhooks.Received, At: m.At,
		PhoneNumber: m.From,
		Data:        data})
	if c.account != 0 && text != nil {
		w.deliveries = append(w.deliveries, binds.Delivery{Account: c.account, Number: m.From, Address: m.To, At: m.At,
			Body: *text})
	}
	return b.obey(ctx, w, last, c)
}

// fromOf returns the sender's number, in E.164 if it is national.
func fromOf(m *handsets.Inbound) string {
	if number, ok := sms.FromCarrier(m.Source); ok {
		return string(number)
	}
	return m.Source
}

// giveUp delivers what has arrived of an overdue part's message, and returns the ids of its parts.
func (b *Switchboard) giveUp(ctx context.Context, w *work, m *handsets.Inbound) (ids []int64, err error) {
	parts, err := w.store.Parts(ctx, m, b.opts.Assembly)
	if err != nil {
		return nil, err
	}
	parts = slices.DeleteFunc(parts, func(p handsets.Inbound) bool { return p.Outcome != handsets.Waiting })
	handsets.SortParts(parts)
	for i := range parts {
		ids = append(ids, parts[i].ID)
	}
	return ids, b.deliver(ctx, w, parts)
}

// command is a message's company and its stop or start word.
type command struct {
	company int64  // 0: none
	account int64  // the API key of kind SMPP whose binds get the message too; 0: none
	change  string // changeStop, changeStart, or "" for none
	sender  string // to which the command applies; "": all senders of the company
	more    bool   // the text says more than the command

	route *handsets.Route // whose answer and groups the message is for; nil: none
}

// read finds a message's company and command.
func (b *Switchboard) read(ctx context.Context, w *work, m *handsets.Inbound, text *string) (c command, err error) {
	words := m.Words(text)
	second := words.Second
	switch {
	case words.First == "":
	case slices.Contains(b.opts.StopWords, words.First):
		c.change = changeStop
	case slices.Contains(b.opts.StartWords, words.First):
		c.change = changeStart
	}
	c.more = second != ""
	names := func(sender string) bool { // whether the second word does: STOP ACME
		named := second != "" && handsets.Word(sender) == second
		if named {
			c.more = words.More
		}
		return named
	}
	routes, err := w.store.RoutesFrom(ctx, m.Destination)
	if err != nil {
		return c, err
	}
	var route *handsets.Route
	if c.change != "" {
		if route = routes.Named(m.Carrier, second); route != nil {
			c.more = words.More
		}
	}
	if route == nil {
		route = routes.Find(m.Carrier, words.First)
	}
	known := b.senders.In(w.tx)
	if route == nil {
		name := strings.TrimPrefix(strings.TrimSpace(m.Destination), "+")
		if !isSender(name) {
			return c, nil
		}
		owners, err := known.Namesakes(ctx, name, 0)
		if err != nil || len(owners) == 0 || slices.ContainsFunc(
			owners, func(o senders.SenderRequest) bool { return o.CompanyID != owners[0].CompanyID }) {
			return c, err // of no company, or of another
		}
		c.company, c.sender = owners[0].CompanyID, owners[0].Name
		names(c.sender)
		return c, nil
	}
	c.company, c.account, c.sender = route.CompanyID, route.Account, route.Sender
	if c.change == "" && route.Acts() {
		c.route = route
	}
	if c.change == "" || c.sender != "" {
		names(c.sender)
		return c, nil
	}
	senders, err := known.SendersOf(ctx, c.company)
	if err != nil {
		return c, err
	}
	address := handsets.Address(m.Destination)
	for _, s := range senders {
		if names(s.Name) {
			c.sender = s.Name
			return c, nil
		}
		if handsets.Address(s.Name) == address {
			c.sender = s.Name
		}
	}
	return c, nil
}

// readRest finds the company of a message without its first part, which may have chosen the company: the one that has
// got other parts, or the only one with routes from the address. It has no command.
func (b *Switchboard) readRest(ctx context.Context, w *work, m *handsets.Inbound, _ *string) (command, error) {
	gap, rest := handsets.Gap, *m
	rest.Body = &gap
	c, err := b.read(ctx, w, &rest, &gap)
	if c.route = nil; err != nil {
		return c, err
	}
	known, err := w.store.Begun(ctx, m, lateWithin)
	if err != nil {
		return c, err
	}
	routes, err := w.store.RoutesFrom(ctx, m.Destination)
	switch other := slices.IndexFunc(routes, func(r handsets.Route) bool { return r.CompanyID != c.company }); {
	case err != nil:
		return c, err
	case known == 0 && other >= 0:
		return command{}, nil
	case known == 0 || known == c.company:
		return c, nil
	}
	c = command{company: known}
	if i := slices.IndexFunc(routes, func(r handsets.Route) bool { return r.CompanyID == known }); i >= 0 {
		c.account = routes[i].Account
	}
	return c, nil
}

// startPlaceholder stands in a stop_reply for the first start word: it undoes the opt-out.
const startPlaceholder = "{{start}}"

// obey adds or removes an opt-out, and acknowledges a change.
func (b *Switchboard) obey(ctx context.Context, w *work, m *handsets.Inbound, c command) error {
	if c.change == "" {
		return nil
	}
	number, ok := sms.FromCarrier(m.Source)
	if c.company == 0 || !ok { // no company can send to a foreign number
		w.changes[changeUnclear]++
		return nil
	}
	var changed int64
	var err error
	reply := strings.ReplaceAll(b.opts.StopReply, startPlaceholder,
		strings.Join(b.opts.StartWords[:min(1, len(b.opts.StartWords))], ""))
	if c.change == changeStop {
		if err := b.companies.In(w.tx).NoteOptOuts(ctx, c.company); err != nil {
			return err
		}
		changed, err = w.store.OptOut(ctx, sms.CompanyID(c.company),
			[]handsets.OptOut{{Number: number, Sender: c.sender, Source: handsets.ByHandset}})
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
