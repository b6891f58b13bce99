package dashboard

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/sms"
)

// focus is the focused element.
type focus struct {
	Nothing bool   // the page itself, or the browser around it
	Text    string // the element's text or name
	Wrong   string // why the focus is not visible; empty: it is
	Serial  int    // position among the reachable elements
}

// reachable are the elements that the keyboard should reach.
const reachable = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter((e) => e.checkVisibility() && !e.disabled)`

// whereFocus finds the focused element. It is visible if it has an outline, is within the window and is not covered.
const whereFocus = `(() => {
	const all = ` + reachable + `;
	const it = document.activeElement;
	if (!it || it === document.body || it === document.documentElement) return {Nothing: true, Text: "", Wrong: "",
	Serial: -1};
	const style = getComputedStyle(it), box = it.getBoundingClientRect();
	const x = (Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2,
	y = (Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)) / 2;
	const on = document.elementFromPoint(x, y);
	let wrong = "";
	if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) wrong = "it has no outline";
	else if (box.width === 0 || box.bottom <= 0 || box.top >= innerHeight || box.right <= 0 || box.left >= innerWidth) wrong = "it is out of the window";
	else if (!on || !(it.contains(on) || on.contains(it))) wrong = "something covers it: " + on?.outerHTML.slice(0, 100);
	const text = ["INPUT", "SELECT", "TEXTAREA"].includes(it.tagName) ? it.name : it.innerText;
	return {Nothing: false, Text: (text ?? "").replace(/\s+/g, " ").trim(), Wrong: wrong, Serial: all.indexOf(it)};
})()`

// key presses a key.
func (p *person) key(key string, modifiers ...input.Modifier) {
	p.Helper()
	p.do("pressing a key", chromedp.KeyEvent(key, chromedp.KeyModifiers(modifiers...)))
}

// tab moves the focus forward or back and returns it.
func (p *person) tab(modifiers ...input.Modifier) (f focus) {
	p.Helper()
	p.key(kb.Tab, modifiers...)
	p.do("looking where the keyboard is", chromedp.Evaluate(whereFocus, &f))
	if f.Wrong != "" {
		p.Fatalf("%s: the focus on %q is not visible: %s", p.where(), f.Text, f.Wrong)
	}
	return f
}

// reach tabs to the element with a text or name, from any position.
func (p *person) reach(text string) {
	p.Helper()
	var passed []string
	for range 120 {
		f := p.tab()
		if f.Text == text {
			return
		}
		passed = append(passed, f.Text)
	}
	p.Fatalf("on %s the keyboard does not come to %q; it came to %q", p.where(), text, passed)
}

// enter presses a key on an element that opens another page, and waits for it.
func (p *person) enter(key string) {
	p.Helper()
	p.do("marking the page", chromedp.Evaluate(`document.documentElement.dataset.old = "yes"`, nil))
	p.key(key)
	p.awaits("the page that the key opens", `document.readyState === "complete" && !document.documentElement.dataset.old`)
}

// awaits waits until a script says true, also while a page opens, in which [chromedp.Poll] fails.
func (p *person) awaits(what, script string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for yes := false; !yes; time.Sleep(10 * time.Millisecond) {
		if err := chromedp.Run(ctx, chromedp.Evaluate(script, &yes)); ctx.Err() != nil {
			p.Fatalf("%s does not show %s: %v", p.where(), what, err)
		}
	}
}

// around tabs through the whole page and back: it reaches every element in page order, and none traps the focus. It
// ends at the top of the page.
func (p *person) around() {
	p.Helper()
	var all int
	// The browser gives the page's own focus with a frame, sometimes after the load.
	p.awaits("the page's own focus", `!document.querySelector("[autofocus]") || document.activeElement.autofocus === true`)
	p.do("beginning at the top", chromedp.Evaluate(
		`document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute("tabindex"), scrollTo(0, 0)`, nil),
		chromedp.Evaluate(`(`+reachable+`).length`, &all))
	stops := func(next, end, step int, modifiers ...input.Modifier) {
		p.Helper()
		for parts := 0; next != end; {
			f := p.tab(modifiers...)
			if parts++; f.Serial == next-step && parts < 6 { // a date has parts
				continue
			}
			if parts = 0; f.Serial != next {
				p.Fatalf("on %s the keyboard comes to %q, element %d, not %d of %d", p.where(), f.Text, f.Serial, next, all)
			}
			next += step
		}
	}
	stops(0, all, 1)
	stops(all-2, -1, -1, input.ModifierShift)
}

// where returns the open page's path.
func (p *person) where() string {
	p.Helper()
	var address string
	p.do("reading the address", chromedp.Location(&address))
	return strings.TrimPrefix(address, p.w.url)
}

// useKeyboard is a customer's session with only the keyboard, on the pages that JavaScript changes.
func useKeyboard(p *person) {
	w, word := p.w, p.lang.T
	c, u, company := w.customer("keys", "ISOKO", 100)
	p.open("/")
	p.around()
	p.reach("email")
	p.key(u.Email)
	if f := p.tab(); f.Text != "password" {
		p.Fatalf("after the e-mail comes %q", f.Text)
	}
	p.key(testPassword)
	p.enter(kb.Enter)
	p.becomes(word("home.steps"))
	if f := p.tab(); f.Text != word("frame.skip") {
		p.Fatalf("a page begins with %q", f.Text)
	}
	p.key(kb.Enter)
	var inside bool
	p.tab()
	p.do("looking where the keyboard is", chromedp.Evaluate(
		`document.getElementById("main").contains(document.activeElement)`, &inside))
	if !inside {
		p.Error("the skip link does not lead to the content")
	}

	c.wants(c.post("/keys", "name", "Till"), http.StatusSeeOther)
	p.plant(c) // the next page shows the key
	p.open("/keys")
	p.around()
	p.reach(word("copy.button"))
	p.do("before copying", noted("[data-copy]", word("copy.done")))
	p.key(" ")
	p.do("copying", chromedp.Poll(`getSelection().toString() !== "" || window.noted`, nil))
	p.do("marking the page", chromedp.Evaluate(`document.documentElement.dataset.old = "yes"`, nil))
	w.api.take()
	for range 2 { // the result appears in place, and the button can be pressed again
		p.reach(word("keys.run"))
		p.key(kb.Enter)
		p.do("waiting for the result", chromedp.Poll(
			`document.documentElement.dataset.old && document.querySelector("#run form:not([data-sent])") && `+
				`document.activeElement.innerText === `+strconv.Quote(word("keys.run")), nil))
		p.becomes("HTTP 200")
	}
	if n := len(w.api.take()); n != 2 {
		p.Errorf("two presses sent %d requests", n)
	}
	p.reach(word("keys.revoke"))
	for _, want := range []bool{true, false} {
		var open bool
		p.key(kb.Enter)
		p.do("looking", chromedp.Evaluate(`document.activeElement.parentElement.open`, &open))
		if open != want {
			p.Errorf("what a key unfolds is open: %v", open)
		}
	}

	p.open("/messages/new")
	p.around()
	p.reach("number")
	p.key("79 12 34 00")
	if f := p.tab(); f.Text != "message" {
		p.Fatalf("after the number comes %q", f.Text)
	}
	p.key("C’est prêt ✅")
	p.becomes(word("compose.encoding") + "\n" + word("encoding.ucs")) // measured while it is typed
	p.reach(word("compose.replace"))
	p.key(kb.Enter)
	p.do("waiting for the text",
		chromedp.Poll(
			`document.querySelector("textarea").value === "C'est pret ✅" && document.activeElement.name === "message"`, nil))
	p.reach(word("compose.send"))
	p.enter(kb.Enter)
	p.becomes(word("flash.sent"))
	w.settle()
	p.becomes(word("life.sent")) // without a key press
	for _, path := range []string{"/senders", "/statement", "/campaigns", "/charts"} {
		p.open(path)
		p.around()
	}
	p.keepsItsPlace(company.ID, u.ID)

	p.size(360)
	p.open("/")
	p.reach(word("frame.menu"))
	p.key(" ")
	if f := p.tab(); f.Text != word("nav.home") {
		p.Errorf("the menu begins with %q", f.Text)
	}
	p.reach(word("nav.statement"))
	p.enter(kb.Enter)
	p.becomes(word("statement.title"))
}

// keepsItsPlace: a region that refreshes automatically keeps the focus.
func (p *person) keepsItsPlace(company, user int64) {
	p.Helper()
	b := &messages.Batch{ULID: ulid.Make(), CompanyID: company, UserID: user, Kind: "bulk", Sender: "DEMO", Recipients: 2,
		Segments: 2}
	var list []*messages.Message
	for _, number := range []sms.Number{"+25761000001", "+25761000002"} { // they stay pending
		list = append(list, &messages.Message{CompanyID: company, UserID: user, Batch: b, Number: number, Body: "x"})
	}
	ids := p.w.insert(list...)
	p.open("/batches/" + b.ULID.String())
	p.reach("+25761000002")
	p.w.exec(`update messages set status = 1, sent_at = now() where id = $1`, ids[1])
	p.becomes(p.lang.T("status.sent") + "\n1")
	var on string
	p.do("looking where the keyboard is", chromedp.Evaluate(`document.activeElement.innerText`, &on))
	if strings.TrimSpace(on) != "+25761000002" {
		p.Errorf("when the page changed the keyboard went from a message to %q", on)
	}
}
