package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"intumwa/internal/testenv"
	"intumwa/texts"
)

// A person has a mouse, a keyboard and files. Scripts only look: they find where a text or field is and read what it
// holds; none submits a form or sets a value.

// sight finds what a person can see. A spot is where to click for an element: on it, or first on what unfolds it.
const sight = `(() => {
	const dense = (text) => text.replace(/\s+/g, "").toLowerCase();
	const seen = (e) => e.getClientRects().length > 0 && e.checkVisibility({visibilityProperty: true, opacityProperty: true});
	const at = (e, more) => {
		e.scrollIntoView({block: "center", inline: "nearest", behavior: "instant"});
		const box = [...e.getClientRects()].find((r) => r.width && r.height) ?? e.getBoundingClientRect();
		const X = box.left + box.width / 2, Y = box.top + box.height / 2, on = document.elementFromPoint(X, Y);
		const covered = !on || !(e.contains(on) || on.contains(e) && on.closest("a, button, summary, label"));
		return {X, Y, Doc: performance.timeOrigin,
		Wrong: covered ? "something covers it: " + (on?.outerHTML.slice(0, 100) ?? "it is out of the window") : "", ...more};
	};
	const unfolder = (e, fold) => {
		for (let d = e.parentElement?.closest("details:not([open])"); d; d = d.parentElement?.closest("details:not([open])"))
			if (seen(d.querySelector("summary"))) return d.querySelector("summary");
		const label = [...document.querySelectorAll("label:has(input[type=checkbox]:not(:checked))")].filter((l) => seen(l) && dense(l.textContent) === fold);
		return label.find((l) => l.parentElement.contains(e));
	};
	const spot = (all, what, fold, more) => {
		const e = all.find(seen);
		if (e) return at(e, more(e));
		for (const hidden of all) {
			const by = unfolder(hidden, dense(fold));
			if (by) return at(by, {Unfold: true});
		}
		return {Wrong: all.length ? what + " is not visible" : "there is no " + what};
	};
	const called = (kinds, text) => [...document.querySelectorAll(kinds)].filter((e) => dense(e.getAttribute("aria-label") ?? e.textContent) === dense(text));
	const named = (text) => [called("a[href], button", text), called("summary", text)].find((all) => all.length) ?? [];
	const field = (name, button) => {
		const press = button && (named(button).find(seen) ?? named(button)[0]);
		return [...(press?.form?.elements ?? document.querySelectorAll("main [name]"))].filter((e) => e.name === name && ["INPUT", "SELECT", "TEXTAREA"].includes(e.tagName) && e.type !== "hidden");
	};
	return {dense, seen, named, field,
		press: (text, fold) => spot(named(text), "link or button", fold, () => ({})),
		fill: (name, button, value, fold) => spot(field(name, button), "field", fold, (e) => ({Kind: e.type, Name: e.labels?.[0]?.textContent ?? "",
			Step: e.tagName === "SELECT" ? [...e.options].findIndex((o) => o.value === value) : 0})),
		tick: (name, text, fold) => spot([...document.querySelectorAll("input[type=checkbox]")].filter((e) => e.name === name && dense(e.getAttribute("aria-label") ?? e.labels[0].textContent) === dense(text)), "box " + text, fold, (e) => ({Ticked: e.checked})),
		label: (name, button, fold) => spot(field(name, button).map((e) => e.labels?.[0]).filter((l) => l), "label", fold, () => ({})),
		invalid: () => [...document.querySelectorAll("input:invalid, select:invalid, textarea:invalid")].map((e) => e.name + ": " + e.validationMessage),
	};
})()`

// spot is where to click.
type spot struct {
	X, Y   float64
	Doc    float64 // identifies the document
	Unfold bool    // it is not the element, but what unfolds it
	Wrong  string
	Kind   string // of a field
	Name   string // of a field, as its label says
	Step   int    // the position of an option
	Ticked bool   // of a box
}

// glance evaluates an expression, also while another page opens.
func (p *person) glance(expression string, into any) {
	p.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(p.ctx, patience)
		err := chromedp.Run(ctx, chromedp.Evaluate(expression, into))
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			p.Fatalf("looking at the page: %v", err)
		}
	}
}

func quoted(values ...string) string {
	for i, v := range values {
		text, _ := json.Marshal(v)
		values[i] = string(text)
	}
	return strings.Join(values, ", ")
}

// find looks for an element until it can be clicked, and unfolds what hides it.
func (p *person) find(what, call string) (s spot) {
	p.Helper()
	for end := time.Now().Add(patience / 3); ; time.Sleep(20 * time.Millisecond) {
		s = spot{}
		p.glance(sight+"."+call, &s)
		switch {
		case s.Wrong == "" && s.Unfold:
			p.click(s)
			continue
		case s.Wrong == "":
			return s
		case time.Now().After(end):
			p.Fatalf("%s, %s: %s:\n%s", p.where(), what, s.Wrong, p.read())
		}
	}
}

func (p *person) click(s spot) {
	p.Helper()
	p.do("clicking", chromedp.MouseEvent(input.MouseMoved, s.X, s.Y), chromedp.MouseClickXY(s.X, s.Y))
}

// tap clicks a link, button or summary with the text of a key; it may be in a fold that is closed.
func (p *person) tap(key string, args ...any) spot {
	p.Helper()
	text := p.lang.T(key, args...)
	s := p.find(fmt.Sprintf("%q", text), "press("+quoted(text, p.lang.T("deliveries.filter"))+")")
	p.click(s)
	return s
}

// press is tap for what opens another page.
func (p *person) press(key string, args ...any) {
	p.Helper()
	s := p.tap(key, args...)
	p.turns(s.Doc, p.lang.T(key, args...))
}

// pressSlowly is press by a hand that holds the button down while the page looks for news twice.
func (p *person) pressSlowly(key string, args ...any) {
	p.Helper()
	text := p.lang.T(key, args...)
	s := p.find(text, "press("+quoted(text, p.lang.T("deliveries.filter"))+")")
	looks := func() (n int) {
		p.glance(`performance.getEntriesByType("resource").filter((e) => e.initiatorType === "xmlhttprequest").length`, &n)
		return n
	}
	p.do("pressing", chromedp.MouseEvent(input.MouseMoved, s.X, s.Y),
		chromedp.MouseEvent(input.MousePressed, s.X, s.Y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	before := looks()
	p.w.until("the page looks twice", func() bool { return looks() >= before+2 })
	p.do("releasing", chromedp.MouseEvent(input.MouseReleased, s.X, s.Y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	p.turns(s.Doc, text)
}

// follow clicks a link with that text, which opens another page.
func (p *person) follow(text string) {
	p.Helper()
	s := p.find(text, "press("+quoted(text, p.lang.T("deliveries.filter"))+")")
	p.click(s)
	p.turns(s.Doc, text)
}

// turns waits for the page after a document.
func (p *person) turns(document float64, because string) {
	p.Helper()
	for end := time.Now().Add(patience / 2); ; time.Sleep(10 * time.Millisecond) {
		var fresh bool
		p.glance(fmt.Sprintf(`performance.timeOrigin !== %v && document.readyState === "complete"`, document), &fresh)
		if fresh {
			return
		}
		if time.Now().After(end) {
			var invalid []string
			p.glance(sight+".invalid()", &invalid)
			p.Fatalf("%s: %q leads nowhere; invalid: %q; %q\n%s", p.where(), because, invalid, p.takeProblems(), p.read())
		}
	}
}

// tick ticks the box of a field with that label.
func (p *person) tick(field, label string) {
	p.Helper()
	call := "tick(" + quoted(field, label, p.lang.T("deliveries.filter")) + ")"
	p.click(p.find(label, call))
	if !p.find(label, call).Ticked {
		p.Fatalf("%s: the box %q of %s is not ticked", p.where(), label, field)
	}
}

// fill enters a value in the first visible field of that name: it types a text or date, goes to an option, or chooses a
// file of that name.
func (p *person) fill(field, value string) {
	p.Helper()
	p.fillIn("", field, value)
}

// fillIn is fill in the form of a button.
func (p *person) fillIn(button, field, value string) {
	p.Helper()
	fold := p.lang.T("deliveries.filter")
	s := p.find(field, "fill("+quoted(field, button, value, fold)+")")
	switch s.Kind {
	case "select-one": // a click on its label gives it the focus
		if s.Step < 0 {
			p.Fatalf("%s: %s has no choice %q", p.where(), field, value)
		}
		p.click(p.find(field, "label("+quoted(field, button, fold)+")"))
		p.key(kb.Home)
		p.key(strings.Repeat(kb.ArrowDown, s.Step))
	case "file":
		p.choose(s, value)
		return
	case "date", "month", "datetime-local":
		p.click(p.find(field, "label("+quoted(field, button, fold)+")"))
		p.typeDate(value)
	default:
		p.click(s)
		p.key("a", input.ModifierCtrl)
		p.key(kb.Delete)
		p.do("typing", input.InsertText(value)) // in one go, as a phone's keyboard enters a word
	}
	var got string
	p.glance(sight+".field("+quoted(field, button)+").find("+sight+".seen)?.value ?? ''", &got)
	if got != value {
		p.Fatalf("%s: %s holds %q after %q was typed", p.where(), field, got, value)
	}
}

// typeDate types a machine's date, month or minute into a field of parts, as an English browser has them.
func (p *person) typeDate(value string) {
	p.Helper()
	date, clock, timed := strings.Cut(value, "T")
	parts := strings.Split(date, "-")
	keys := parts[1] + strings.Join(parts[2:], "") + parts[0]
	if len(parts) == 2 { // a month has a name
		at, err := time.Parse("2006-01", date)
		if err != nil {
			p.Fatal(err)
		}
		keys = at.Month().String()[:3] + kb.ArrowRight + parts[0]
	}
	if timed {
		at, err := time.Parse("15:04", clock)
		if err != nil {
			p.Fatal(err)
		}
		keys += kb.ArrowRight + at.Format("0304PM")
	}
	p.key(keys)
}

// choose clicks a file field and chooses a file in the dialog that opens.
func (p *person) choose(s spot, file string) {
	p.Helper()
	p.do("expecting a file dialog", page.SetInterceptFileChooserDialog(true))
	p.click(s)
	select {
	case node := <-p.choosers:
		p.do("choosing a file", dom.SetFileInputFiles([]string{file}).WithBackendNodeID(node))
	case <-time.After(patience / 3):
		p.Fatalf("%s: no file dialog opens for %q", p.where(), s.Name)
	}
}

// file writes a file that can be chosen, and returns its path.
func (p *person) file(name, content string) string {
	p.Helper()
	path := filepath.Join(p.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		p.Fatal(err)
	}
	return path
}

// submit fills fields of a button's form, given as names and values, presses the button, and expects the text of a key
// on the next page.
func (p *person) submit(button, sees string, fields ...string) {
	p.Helper()
	p.filled(button, fields...)
	p.press(button)
	p.sees(sees)
}

// filled fills fields of a button's form.
func (p *person) filled(button string, fields ...string) {
	p.Helper()
	for i := 0; i < len(fields); i += 2 {
		p.fillIn(p.lang.T(button), fields[i], fields[i+1])
	}
}

// sees waits for the text of a key.
func (p *person) sees(key string, args ...any) {
	p.Helper()
	p.reads(p.lang.T(key, args...))
}

// reads waits for texts.
func (p *person) reads(texts ...string) {
	p.Helper()
	for _, text := range texts {
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // a page looks every 15 s at least
			var has bool
			p.glance(sight+".dense(document.body?.innerText ?? '').includes("+quoted(strings.ToLower(dense(text)))+")", &has)
			if has {
				break
			}
			if time.Now().After(end) {
				p.Fatalf("%s lacks %q:\n%s", p.where(), text, p.read())
			}
		}
	}
}

func dense(text string) string { return strings.Join(strings.Fields(text), "") }

// download clicks a link to a file and returns the file.
func (p *person) download(key string, args ...any) string {
	p.Helper()
	p.tap(key, args...)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		files, _ := os.ReadDir(p.downloads)
		for _, f := range files {
			if _, complete := p.complete.Load(f.Name()); complete {
				path := filepath.Join(p.downloads, f.Name())
				text, err := os.ReadFile(path)
				if err == nil {
					err = os.Remove(path)
				}
				if err != nil {
					p.Fatal(err)
				}
				return string(text)
			}
		}
		if time.Now().After(end) {
			p.Fatalf("%s: %q downloads nothing: %v", p.where(), p.lang.T(key, args...), files)
		}
	}
}

// source returns the page's markup.
func (p *person) source() (text string) {
	p.Helper()
	p.glance(`document.documentElement.outerHTML`, &text)
	return text
}

// look checks the open page at the person's own width and at one of the other kind, with axe when it is seen first. The
// long suites check each state of a page with axe, and at three widths.
func (p *person) look(name string) {
	p.Helper()
	var page struct {
		Path string
		Axe  bool
	}
	p.glance(`({Path: location.pathname, Axe: "axe" in window})`, &page)
	page.Path = "axe " + page.Path
	wanted := testenv.Thorough() || !p.seen[page.Path]
	if p.seen[page.Path] = true; wanted && !page.Axe {
		p.do("adding axe", chromedp.Evaluate(p.axe+"; undefined", nil))
	}
	switch {
	case testenv.Thorough():
		p.judge(name, true, 1280, 390, 320)
	case p.width < 800:
		p.judge(name, wanted, p.width, 1280)
	default:
		p.judge(name, wanted, p.width, 320)
	}
}

// glanceAt checks the open page at the person's own width only, without axe.
func (p *person) glanceAt(name string) {
	p.Helper()
	p.judge(name, false, p.width)
}

// judge checks the open page: its status and texts, the browser's console, what a form hides, and its layout.
func (p *person) judge(name string, axe bool, widths ...int64) {
	p.Helper()
	var page struct {
		Status  int
		Size    int
		Missing bool
		Path    string
	}
	p.glance(
		`({Status: performance.getEntriesByType("navigation")[0].responseStatus, Size: `+
			`document.documentElement.outerHTML.length,
		Missing: document.documentElement.outerHTML.includes(`+quoted(texts.Missing)+`), Path: location.pathname})`, &page)
	if page.Status >= 500 || page.Missing || page.Size > 100_000 {
		p.Errorf("%s: status %d, %d characters, or texts are missing:\n%s", name, page.Status, page.Size, p.read())
	}
	p.seen[page.Path] = true
	own := p.width
	for _, width := range widths {
		p.size(width)
		var found []string
		p.do("judging "+name, chromedp.Evaluate(fmt.Sprintf(`(%s)(%d, %v, %s)`, judge, width, axe && width == own,
			quoted(p.lang.T("deliveries.filter"))), &found, awaited))
		for _, problem := range found {
			p.Errorf("%s at %d: %s", name, width, problem)
		}
	}
	p.size(own)
	for _, problem := range p.takeProblems() {
		p.Errorf("%s: the console: %s", name, problem)
	}
}

// judge returns an open page's faults: a control that a form needs and nobody can see, content wider than the window, a
// cell taller than ten lines without a list, a broken word, number or time in a cell, a label over its value or without
// one, a form whose controls stand at different heights, and axe's findings.
const judge = `async (width, axes, fold) => {
	const pen = document.createElement("canvas").getContext("2d");
	const found = [], sight = ` + sight + `;
	const folds = [...document.querySelectorAll("main details")],
	boxes = [...document.querySelectorAll("label input[type=checkbox]")].filter((box) => sight.dense(box.parentElement.textContent) === sight.dense(fold));
	const was = folds.map((d) => d.open), ticked = boxes.map((box) => box.checked);
	const open = (is) => folds.forEach((d, i) => { d.open = is(d, i); });
	boxes.forEach((box) => { box.checked = true; });
	// A form's own folds are as the page has them; those around it are open.
	open((d, i) => was[i] || d.querySelector("form"));
	for (const form of document.forms) {
		if (![...form.elements].some((e) => e.type === "submit" && sight.seen(e))) continue;
		for (const e of form.elements) {
			const may = e.willValidate && (e.required || e.pattern || e.min || e.max || e.minLength > 0 || ["email", "url", "number", "date", "month", "time", "datetime-local"].includes(e.type));
			const own = e.closest("details");
			if ((may || e.matches(":invalid")) && (!sight.seen(e) || e.disabled || own && form.contains(own))) found.push("the form " + form.getAttribute("action") + " can be held up by " + e.name + ", which may be out of sight");
		}
	}
	open(() => false);
	for (const cell of document.querySelectorAll("td, th")) {
		const style = getComputedStyle(cell), lines = (cell.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom)) / parseFloat(style.lineHeight);
		if (lines > 10 && cell.checkVisibility() && !cell.querySelector("ul")) found.push("a cell of " + Math.round(lines) + " lines: " + cell.innerText.slice(0, 80));
	}
	for (const cell of document.querySelectorAll("td[data-label]")) {
		const label = getComputedStyle(cell, "::before");
		if (label.content === "none" || !cell.checkVisibility()) continue;
		if (!cell.innerText.trim() && !cell.querySelector("input, select, button, svg")) found.push("a label without a value: " + cell.dataset.label);
		pen.font = label.font;
		const track = parseFloat(getComputedStyle(cell).gridTemplateColumns);
		if (label.whiteSpace === "nowrap" && pen.measureText(cell.dataset.label).width > track) found.push("a label over its value: " + cell.dataset.label);
	}
	const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
	for (let node; node = texts.nextNode();) {
		if ([node.previousSibling, node.nextSibling].some((n) => n && n.nodeName === "WBR")) continue; // an endless word
		if (!node.parentElement.closest("td, th") || !node.parentElement.checkVisibility()) continue;
		for (const word of node.data.matchAll(/\S+/g)) for (const part of word[0].length > 20 || width < 640 && word[0].includes("@") ? [] : word[0].matchAll(/[\p{L}\p{N}.]+/gu)) {
			const range = document.createRange();
			range.setStart(node, word.index + part.index);
			range.setEnd(node, word.index + part.index + part[0].length);
			if (new Set([...range.getClientRects()].map((r) => r.top)).size > 1) found.push("a broken word: " + part[0]);
		}
	}
	for (const form of document.querySelectorAll("form.row")) {
		const boxes = [...form.querySelectorAll(":scope > button, input:not([type=hidden]), select")].map((e) => e.getBoundingClientRect());
		if (boxes.some((a) => boxes.some((b) => a.top < b.bottom && b.top < a.bottom && Math.abs(a.bottom - b.bottom) > 2))) found.push("a crooked form: " + form.action);
	}
	for (const piece of document.querySelectorAll("td .number, td time")) {
		const range = document.createRange();
		range.selectNodeContents(piece);
		if (piece.innerText.length < 20 && new Set([...range.getClientRects()].map((r) => r.top)).size > 1) found.push("broken: " + piece.innerText);
	}
	open(() => true);
	const over = document.scrollingElement.scrollWidth - width;
	if (over > 0) found.push(over + " px too wide");
	for (const sheet of document.querySelectorAll(".flush")) {
		const right = sheet.getBoundingClientRect().right;
		const cut = [...sheet.querySelectorAll("td, td *")].find((e) => e.getBoundingClientRect().right > right && e.checkVisibility());
		if (cut) found.push("cut off by " + (cut.getBoundingClientRect().right - right) + " px: " + cut.outerHTML.slice(0, 120));
	}
	if (axes) {
		const all = await axe.run(document, {resultTypes: ["violations"]});
		for (const v of all.violations) found.push(v.help + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).join("; "));
	}
	open((d, i) => was[i]);
	boxes.forEach((box, i) => { box.checked = ticked[i]; });
	return found;
}`
