package dashboard

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"intumwa/dashboard/words"
	"intumwa/internal/testenv"
)

// patience bounds the wait for anything that must happen.
const patience = 30 * time.Second

// TestInChromium tests what needs a browser: layout, accessibility, the keyboard, JavaScript and print.
func TestInChromium(t *testing.T) {
	w := newWorld(t, nil)
	w.strays()
	looks := map[string][]look{"fr": walkPages(t, w, "fr")}
	if testenv.Thorough() {
		looks["en"] = walkPages(t, w, "en")
	}
	chromium := startChromium(t)
	for language := range looks {
		t.Run("pages in "+language, func(t *testing.T) { checkLooks(chromium, t, w, language, looks[language]) })
	}
	t.Run("keyboard", func(t *testing.T) { useKeyboard(newPerson(chromium, t, w, "fr")) })
	t.Run("paper", func(t *testing.T) { readPaper(newPerson(chromium, t, w, "fr")) })
	t.Run("samples of the reference", func(t *testing.T) { copySample(newPerson(chromium, t, w, "fr")) })
}

// copySample copies a sample of the API's reference with its script and style, under its content security policy.
func copySample(p *person) {
	source, err := os.ReadFile("../api/pages.go")
	if err != nil {
		p.Fatal(err)
	}
	of := regexp.MustCompile(`"Content-Security-Policy", "([^"]+)"`).FindSubmatch(source)
	if of == nil {
		p.Fatal("the reference has no policy")
	}
	files := http.StripPrefix("/docs/", http.FileServer(http.Dir("../api/docs")))
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Security-Policy", string(of[1]))
		switch {
		case strings.HasPrefix(r.URL.Path, "/docs/"):
			files.ServeHTTP(rw, r)
		case r.URL.Path == "/":
			_, _ = io.WriteString(rw, `<!doctype html><html lang="fr" data-copy="Copier" data-copied="Copié"><link rel="stylesheet" href="/docs/style.css">
				<pre class="code"><code>curl</code></pre><script src="/docs/copy.js"></script>`)
		}
	}))
	p.Cleanup(server.Close)
	p.open(server.URL + "/")
	var visible bool
	p.do("copying", chromedp.Evaluate(`document.querySelector(".copy").checkVisibility({opacityProperty: true})`, &visible),
		chromedp.Click(".copy", chromedp.ByQuery), chromedp.WaitVisible(`//button[text()="Copié"]`, chromedp.BySearch))
	if problems := p.takeProblems(); !visible || len(problems) > 0 {
		p.Errorf("visible %v, %v", visible, problems)
	}
}

// startChromium runs the system's Chromium until the test ends.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	path := testenv.Tool(t, "chromium")
	profile, err := os.MkdirTemp("", "intumwa-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("disable-features", "Translate,OptimizationHints,MediaRouter"),
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser's end
		cancel()
		end()
		for range 100 { // its helper processes may still write
			if err = os.RemoveAll(profile); err == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("the browser's profile stays: %v", err)
	})
	if err := chromedp.Run(ctx); err != nil {
		t.Fatalf("starting Chromium: %v", err)
	}
	return ctx
}

// checkLooks opens the pages of a walk again in Chromium: judge and axe find nothing, and no page violates its content
// security policy. The long suites add English, dark mode, and axe in a wide window.
func checkLooks(chromium context.Context, t *testing.T, w *world, language string, looks []look) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/look/"))
		if err != nil {
			w.d.ServeHTTP(rw, r)
			return
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		if n == len(looks) { // for the frames
			_, _ = io.WriteString(rw, `<!doctype html><link rel="icon" href="data:,">`)
		} else {
			rw.Header().Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'", "frame-ancestors 'self'", 1))
			_, _ = io.WriteString(rw, looks[n].html)
		}
	}))
	t.Cleanup(server.Close)
	axe, err := exec.Command("../scripts/axe.sh").Output()
	if err == nil {
		axe, err = os.ReadFile(strings.TrimSpace(string(axe)))
	}
	if err != nil {
		testenv.Lacks(t, "axe-core cannot be had: "+err.Error())
	}
	p := newPerson(chromium, t, w, language)
	p.do("adding axe", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(string(axe)).Do(ctx)
		return err
	}))
	colors, axes := []string{"light"}, "[320]" // and the widths at which axe runs
	if testenv.Thorough() {
		colors, axes = []string{"light", "dark"}, "[1280, 320]"
	}
	p.open(server.URL + "/look/" + strconv.Itoa(len(looks))) // an empty page, for the frame
	p.do("preparing", chromedp.Evaluate(judge, nil))
	for _, color := range colors {
		p.do("choosing colours", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: color}, {Name: "prefers-reduced-motion", Value: "reduce"}})) // no colour transitions
		for n, look := range looks {
			var found []string
			p.do("judging "+look.name, chromedp.Evaluate(fmt.Sprintf(`judge(%d, %s)`, n, axes), &found,
				func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
			for _, problem := range append(found, p.takeProblems()...) {
				t.Errorf("%s, %s: %s", look.name, color, problem)
			}
		}
	}
}

// judge opens a page in a frame and returns its faults at one screen and two phone widths: content wider than the
// window, a cell taller than ten lines, a broken word, number or time in a cell, a label over its value or without one, a
// form whose controls stand at different heights, and axe's findings.
const judge = `const frame = document.body.appendChild(Object.assign(document.createElement("iframe"), {height: 860})), pen = document.createElement("canvas").getContext("2d");
const judge = async (n, axes) => {
	await new Promise((loaded) => { frame.onload = loaded; frame.src = "/look/" + n; });
	const page = frame.contentDocument, found = [];
	const opened = (open) => { for (const d of page.querySelectorAll("main details")) d.open = open; };
	for (const width of [1280, 390, 320]) {
		frame.width = width;
		const add = (problem) => found.push(width + ": " + problem);
		opened(false);
		for (const cell of page.querySelectorAll("td, th")) {
			const style = frame.contentWindow.getComputedStyle(cell), lines = (cell.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom)) / parseFloat(style.lineHeight);
			if (lines > 10 && cell.checkVisibility()) add("a cell of " + Math.round(lines) + " lines: " + cell.innerText.slice(0, 80));
		}
		for (const cell of page.querySelectorAll("td[data-label]")) {
			const label = frame.contentWindow.getComputedStyle(cell, "::before");
			if (label.content === "none" || !cell.checkVisibility()) continue;
			if (!cell.innerText.trim() && !cell.querySelector("input, select, button, svg")) add("a label without a value: " + cell.dataset.label);
			pen.font = label.font;
			const track = parseFloat(frame.contentWindow.getComputedStyle(cell).gridTemplateColumns);
			if (label.whiteSpace === "nowrap" && pen.measureText(cell.dataset.label).width > track) add("a label over its value: " + cell.dataset.label);
		}
		const texts = page.createTreeWalker(page.querySelector("main"), NodeFilter.SHOW_TEXT);
		for (let node; node = texts.nextNode();) {
			if ([node.previousSibling, node.nextSibling].some((n) => n && n.nodeName === "WBR")) continue; // an endless word
			if (!node.parentElement.closest("td, th") || !node.parentElement.checkVisibility()) continue;
			for (const word of node.data.matchAll(/\S+/g)) for (const part of word[0].length > 20 || width < 640 && word[0].includes("@") ? [] : word[0].matchAll(/[\p{L}\p{N}.]+/gu)) {
				const range = page.createRange();
				range.setStart(node, word.index + part.index);
				range.setEnd(node, word.index + part.index + part[0].length);
				if (new Set([...range.getClientRects()].map((r) => r.top)).size > 1) add("a broken word: " + part[0]);
			}
		}
		for (const form of page.querySelectorAll("form.row")) {
			const boxes = [...form.querySelectorAll(":scope > button, input:not([type=hidden]), select")].map((e) => e.getBoundingClientRect());
			if (boxes.some((a) => boxes.some((b) => a.top < b.bottom && b.top < a.bottom && Math.abs(a.bottom - b.bottom) > 2))) add("a crooked form: " + form.action);
		}
		for (const piece of page.querySelectorAll("td .number, td time")) {
			const range = page.createRange();
			range.selectNodeContents(piece);
			if (piece.innerText.length < 20 && new Set([...range.getClientRects()].map((r) => r.top)).size > 1) add("broken: " + piece.innerText);
		}
		opened(true);
		const over = page.scrollingElement.scrollWidth - width;
		if (over > 0) add(over + " px too wide");
		for (const sheet of page.querySelectorAll(".flush")) {
			const right = sheet.getBoundingClientRect().right;
			const cut = [...sheet.querySelectorAll("td, td *")].find((e) => e.getBoundingClientRect().right > right && e.checkVisibility());
			if (cut) add("cut off by " + (cut.getBoundingClientRect().right - right) + " px: " + cut.outerHTML.slice(0, 120));
		}
		if (axes.includes(width)) {
			const all = await frame.contentWindow.axe.run(page, {resultTypes: ["violations"]});
			for (const v of all.violations) add(v.help + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).join("; "));
		}
	}
	return found;
};`

// person uses the dashboard in Chromium.
type person struct {
	*testing.T
	w    *world
	ctx  context.Context
	lang *words.Language

	mu       sync.Mutex
	problems []string
}

// newPerson opens a window with its own cookies.
func newPerson(chromium context.Context, t *testing.T, w *world, language string) *person {
	t.Helper()
	lang, _ := w.d.words.ByTag(language)
	// A new browser context has no window to open a tab in.
	var own target.ID
	if err := chromedp.Run(chromium, chromedp.ActionFunc(func(ctx context.Context) error {
		ctx = cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		id, err := target.CreateBrowserContext().WithDisposeOnDetach(true).Do(ctx)
		if err == nil {
			own, err = target.CreateTarget("about:blank").WithBrowserContextID(id).WithNewWindow(true).Do(ctx)
		}
		return err
	})); err != nil {
		t.Fatalf("opening a window: %v", err)
	}
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithTargetID(own))
	life := 5 * time.Minute
	if testenv.Thorough() { // all pages in both colours and at both widths
		life = 30 * time.Minute
	}
	ctx, stop := context.WithTimeout(ctx, life)
	t.Cleanup(func() { stop(); cancel() })
	p := &person{T: t, w: w, ctx: ctx, lang: lang}
	chromedp.ListenTarget(ctx, p.listen)
	if err := chromedp.Run(ctx); err != nil { // the tab lives as long as the context of its first run
		t.Fatalf("opening a tab: %v", err)
	}
	p.do("opening a tab", log.Enable(), network.Enable(), network.SetExtraHTTPHeaders(network.Headers{"Accept-Language": language}))
	p.size(1280)
	return p
}

func (p *person) size(width int64) {
	p.Helper()
	p.do("resizing", emulation.SetDeviceMetricsOverride(width, 860, 1, width < 800))
}

// listen collects console errors and violations of the content security policy.
func (p *person) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelWarning || e.Entry.Level == log.LevelError {
			p.problems = append(p.problems, fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, "exception: "+e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
			p.problems = append(p.problems, fmt.Sprintf("console: %v", e.Args))
		}
	}
}

func (p *person) takeProblems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.problems = nil }()
	return p.problems
}

func (p *person) do(what string, actions ...chromedp.Action) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// open opens a page, by path or full address.
func (p *person) open(address string) {
	p.Helper()
	if strings.HasPrefix(address, "/") {
		address = p.w.url + address
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Navigate(address)); err != nil {
		p.Fatalf("opening %s: %v", address, err)
	}
}

// plant signs the person in with a client's session.
func (p *person) plant(c *client) {
	p.Helper()
	p.do("setting a cookie", network.SetCookie("intumwa-session", c.cookie("intumwa-session")).WithURL(p.w.url))
}

// read returns the page's text.
func (p *person) read() (text string) {
	p.Helper()
	p.do("reading the page", chromedp.Evaluate(`document.body.innerText`, &text))
	return text
}

// becomes waits until the page shows a text.
func (p *person) becomes(text string) {
	p.Helper()
	for end := time.Now().Add(patience); !strings.Contains(p.read(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("%s never shows %q:\n%s", p.where(), text, p.read())
		}
	}
}

// readPaper expects a readable printed statement: its owner, its rows, no navigation, nothing cut off.
func readPaper(p *person) {
	c, company := p.w.merchant("paper", 1000)
	p.w.history(company.ID)
	p.plant(c)
	p.size(680) // A4 without its margins, 180 mm
	p.do("looking at the paper", emulation.SetEmulatedMedia().WithMedia("print"))
	for _, path := range []string{"/statement/print?from=2026-01-01", "/statement"} {
		p.open(path)
		text := p.read()
		for _, want := range []string{company.Name, "Facture 2026-0147", p.lang.T("statement.amount"), "+" + p.lang.Number(1000)} {
			if !strings.Contains(text, want) {
				p.Errorf("%s lacks %q on paper:\n%s", path, want, text)
			}
		}
		for _, key := range []string{"nav.keys", "nav.signout", "frame.menu", "frame.skip", "frame.foot", "statement.csv", "statement.show", "sheet.print"} {
			if strings.Contains(text, p.lang.T(key)) {
				p.Errorf("%s has %q on paper", path, p.lang.T(key))
			}
		}
		var over []string
		p.do("measuring", chromedp.Evaluate(`[...document.querySelectorAll("main *")].filter((e) => e.checkVisibility() &&
			(e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible")).map((e) => e.outerHTML.slice(0, 100))`, &over))
		if len(over) > 0 {
			p.Errorf("%s is cut off on paper: %s", path, over)
		}
	}
}
