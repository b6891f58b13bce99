package inbound

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/contacts"
	"intumwa/dashboard/web"
	"intumwa/inbound/handsets"
	"intumwa/messages/lookup"
	"intumwa/sms"
)

// conversationsPage is a list of conversations.
type conversationsPage struct {
	web.Listing[conversation]

	Typed  string // the number that was searched for, also if it has not written; "": none
	Unread bool   // there are unread ones
	UpTo   int64  // the latest message of the page
}

// conversation is a line of the list.
type conversation struct {
	handsets.Conversation

	Name string // of the contact; "": none
}

// namesMost is how many contacts a search by name finds at most.
const namesMost = contacts.MaxPage

// Conversations is GET /conversations: the numbers that have written to the company.
func (ps *Pages) Conversations(v *web.Visit, t web.Tenant) (err error) {
	f := v.Parameters("q")
	place := handsets.Place{From: v.After("from"), Skip: int(min(v.After("skip"), 1<<20))}
	var p conversationsPage
	p.Filtered, p.Later, p.First = f.Value("q") != "", place != handsets.Place{}, f.Address("/conversations")
	var filter handsets.ConversationFilter
	if p.Typed, filter, err = ps.searched(v, t); err != nil {
		return err
	}
	found, next, err := ps.Deps.Handsets.Conversations(v.Ctx(), t.CompanyID(), filter, place, web.MessagesOnPage)
	if errors.Is(err, handsets.ErrNotFound) { // it was purged, and so were all older ones
		err = nil
	}
	if err != nil {
		return err
	}
	if next != (handsets.Place{}) {
		p.Next = f.Address("/conversations", "from", strconv.FormatInt(next.From, 10), "skip", strconv.Itoa(next.Skip))
	}
	var numbers []sms.Number
	for i := range found {
		numbers = append(numbers, sms.Number(found[i].From))
	}
	names, err := ps.Deps.Contacts.Names(v.Ctx(), t.Company.ID, numbers)
	for _, c := range found {
		p.Rows = append(p.Rows, conversation{c, names[sms.Number(c.From)]})
		p.Unread, p.UpTo = p.Unread || c.Unread > 0, max(p.UpTo, c.ID)
	}
	return v.Page(err, "conversations", p)
}

// searched reads the search: a number, or the beginning of a contact's name or a text of a message.
func (ps *Pages) searched(v *web.Visit, t web.Tenant) (number string, f handsets.ConversationFilter, err error) {
	q := v.Form().Value("q")
	if q == "" {
		return "", f, nil
	}
	if number = ps.numberOf(q); number != "" {
		f.Of = []string{number}
		return number, f, nil
	}
	f.Text = q
	found, _, err := ps.Deps.Contacts.List(v.Ctx(), t.Company.ID, contacts.Search(q), "", namesMost)
	for i := range found {
		f.Of = append(f.Of, string(found[i].Number))
	}
	return "", f, err
}

// numberOf returns a number as messages have it; "" if the text is none.
func (ps *Pages) numberOf(text string) string {
	if number, ok := ps.Plan.Parse(text); ok {
		return string(number)
	}
	if forms := handsets.Foreign(text); forms != nil {
		return forms[0]
	}
	return ""
}

// ReadAll is POST /conversations/read.
func (ps *Pages) ReadAll(v *web.Visit, t web.Tenant) error {
	upTo, err := strconv.ParseInt(v.Form().Value("up_to"), 10, 64)
	if err != nil {
		return web.ErrNotFound
	}
	if _, err := ps.Deps.Handsets.Message(v.Ctx(), t.CompanyID(), upTo); errors.Is(err, handsets.ErrNotFound) {
		return web.ErrNotFound
	} else if err != nil {
		return err
	}
	return v.Done(ps.Deps.Marks.Read(v.Ctx(), t.CompanyID(), "", upTo), "/conversations", "flash.read")
}

// talkPage is a conversation with one number: a page of it, the oldest message first.
type talkPage struct {
	With     string
	Name     string // of the contact; "": none
	National bool   // it can be answered
	Lines    []line
	Older    string // address of the older messages; "": none
	Later    bool   // there are newer ones
	Path     string // of the newest ones
	OptedOut bool   // of all senders, or of one
	Reply    any
}

// line is a message of a conversation.
type line struct {
	ID       int64
	At       time.Time
	Received bool
	Text     string
	NoText   bool      // what was received is not text, or what was sent is deleted
	ULID     ulid.ULID // of a sent one
	Sender   string    // of a sent one; what the received one was sent to
	Status   string    // of a sent one
	Auto     bool      // it is the answer of a route
	Why      string    // key of the text that says why a received one got no answer from its route; "": it did
}

// talkMost is the length of a page of a conversation.
const talkMost = web.MessagesOnPage

// Conversation is GET /conversations/with.
func (ps *Pages) Conversation(v *web.Visit, t web.Tenant) error {
	return ps.talk(v, t, v.C.Query("number"))
}

// Answer is POST /conversations/with.
func (ps *Pages) Answer(v *web.Visit, t web.Tenant) error {
	with := v.Form().Value("number")
	number, ok := ps.Plan.Parse(with)
	if !ok {
		return web.ErrNotFound
	}
	sent, err := ps.SendReply(v, t, number)
	if err != nil || !sent {
		return cmp.Or(err, ps.talk(v, t, with))
	}
	return v.Redirect(talkPath(string(number))+"#latest", "flash.sent")
}

func talkPath(number string, more ...string) string {
	return web.Address("/conversations/with", append([]string{"number", number}, more...)...)
}

// talk shows the conversation with a number, as a person or a carrier writes it.
func (ps *Pages) talk(v *web.Visit, t web.Tenant, text string) (err error) {
	p := talkPage{With: cmp.Or(ps.numberOf(text), text), Later: v.After("before") > 0}
	p.Path = talkPath(p.With)
	number, known := ps.Plan.Parse(p.With)
	p.National = known
	switch {
	case p.With == "" || strings.ContainsFunc(p.With, sms.IsControl) || len(p.With) > 40 || !utf8.ValidString(p.With):
		return web.ErrNotFound
	case known:
		if err := ps.about(v, t, &p, number); err != nil {
			return err
		}
	}
	before := v.After("before")
	next, err := ps.lines(v, t, &p, number, before)
	if err != nil {
		return err
	}
	if len(p.Lines) == 0 && !known {
		return web.ErrNotFound
	}
	if next > 0 {
		p.Older = talkPath(p.With, "before", strconv.FormatInt(next, 10))
	}
	slices.Reverse(p.Lines)
	if before == 0 && v.Session.May(accounts.MaySend) && !v.HeadOnly() {
		ps.read(v, t, &p)
	}
	if p.National && v.Session.May(accounts.MaySend) {
		from := "" // as the person knows the company
		for _, l := range p.Lines {
			from = cmp.Or(strings.TrimPrefix(l.Sender, "+"), from)
		}
		p.Reply, err = ps.Reply(v, t, from)
	}
	return v.Page(err, "conversation", p)
}

// about reads what is known of a number.
func (ps *Pages) about(v *web.Visit, t web.Tenant, p *talkPage, number sms.Number) error {
	names, err := ps.Deps.Contacts.Names(v.Ctx(), t.Company.ID, []sms.Number{number})
	if err != nil {
		return err
	}
	p.Name = names[number]
	out, _, err := ps.Deps.Handsets.OptOuts(v.Ctx(), t.CompanyID(), handsets.OptOutFilter{Number: number}, 0, 1)
	p.OptedOut = len(out) > 0
	return err
}

// read marks the conversation as read. A failure leaves it unread: the page is shown while nothing can be written.
func (ps *Pages) read(v *web.Visit, t web.Tenant, p *talkPage) {
	ctx, cancel := context.WithTimeout(v.Ctx(), time.Second)
	defer cancel()
	latest := int64(0)
	for _, l := range p.Lines {
		if l.Received {
			latest = max(latest, l.ID)
		}
	}
	if latest == 0 {
		return
	}
	unread, err := ps.Deps.Handsets.Unread(ctx, t.CompanyID(), p.With, latest)
	if err == nil && unread {
		_ = ps.Deps.Marks.Read(ctx, t.CompanyID(), p.With, latest)
	}
}

// looksWithin is how long one page looks for sent messages: a read may find few among many to other numbers, and the
// page then has a link to continue.
const looksWithin = 25 * time.Millisecond

// lines reads the newest messages in both directions with ids below before (0: all), newest first, and returns the next
// page's before; 0 for none. Both kinds have ids of one sequence.
func (ps *Pages) lines(v *web.Visit, t web.Tenant, p *talkPage, number sms.Number, before int64) (next int64,
	err error) {
	received, err := ps.Deps.Handsets.With(v.Ctx(), t.CompanyID(), p.With, before, talkMost+1)
	if err != nil {
		return 0, err
	}
	automatic := map[ulid.ULID]bool{}
	floor := int64(0) // all messages from this id on are read
	for i := range received {
		m := &received[i]
		l := line{ID: m.ID, At: m.At, Received: true, Sender: m.To, NoText: m.Body == nil, Why: whyUnanswered(m.Answer)}
		if m.Body != nil {
			l.Text = *m.Body
		}
		automatic[m.AnswerID] = true
		if p.Lines = append(p.Lines, l); i == talkMost {
			floor = m.ID
		}
	}
	if number != "" {
		sent, below, err := ps.sent(v, t, number, before)
		if err != nil {
			return 0, err
		}
		floor = max(floor, below)
		for i := range sent {
			r := &sent[i]
			p.Lines = append(p.Lines, line{ID: r.ID, At: r.CreatedAt, Text: r.Body, NoText: r.Body == "", ULID: r.ULID,
				Sender: r.Sender, Status: r.Status.String(), Auto: automatic[r.ULID]})
		}
	}
	p.Lines = slices.DeleteFunc(p.Lines, func(l line) bool { return l.ID < floor })
	slices.SortFunc(p.Lines, func(a, b line) int { return cmp.Compare(b.ID, a.ID) })
	if len(p.Lines) > talkMost {
		p.Lines = p.Lines[:talkMost]
		floor = p.Lines[talkMost-1].ID
	}
	return floor, nil
}

// sent reads the newest messages to a number, and the id from which on all are read; 0: all.
func (ps *Pages) sent(v *web.Visit, t web.Tenant, number sms.Number, before int64) (all []lookup.Record, floor int64,
	err error) {
	floor = before
	for start := time.Now(); ; {
		var more []lookup.Record
		more, floor, err = ps.Deps.Lookup.List(v.Ctx(), t.CompanyID(), lookup.Filter{Number: number}, floor,
			talkMost+1-len(all))
		all = append(all, more...)
		if err != nil || floor == 0 || len(all) > talkMost || time.Since(start) > looksWithin {
			break
		}
	}
	return all, floor, err
}

// whyTexts are the keys of the texts that say why a message got no answer from its route.
var whyTexts = map[handsets.AnswerState]string{"": "", handsets.AnswerDue: "", handsets.AnswerSent: "",
	handsets.AnswerClosed: "conversation.why.closed", handsets.AnswerRepeated: "conversation.why.repeated",
	handsets.AnswerUnpaid: "conversation.why.unpaid", handsets.AnswerOptedOut: "conversation.why.optedout"}

// whyUnanswered returns the key of the text that says why a message got no answer from its route; "" for none.
func whyUnanswered(state handsets.AnswerState) string {
	if key, known := whyTexts[state]; known {
		return key
	}
	return "conversation.why.other"
}
