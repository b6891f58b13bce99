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
	"strings"
	"sync"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"intumwa/internal/testenv"
	"intumwa/texts"
)

// patience bounds the wait for anything that must happen.
const patience = 30 * time.Second

// TestByHand: people do what the pages are for with a mouse and a keyboard, some of it on a phone: the owner of a
// company, its people, and an administrator. They open every page. The long suites repeat it in English and dark
// colours, with the windows exchanged. It takes longest, so it stands first.
func TestByHand(t *testing.T) {
	axe, err := exec.Command("../scripts/axe.sh").Output()
	if err == nil {
		axe, err = os.ReadFile(strings.TrimSpace(string(axe)))
	}
	if err != nil {
		testenv.Lacks(t, "axe-core cannot be had: "+err.Error())
	}
	if !testenv.Thorough() {
		walk(t, "fr", string(axe))
		return
	}
	for _, language := range []string{"fr", "en"} {
		t.Run(language, func(t *testing.T) { walk(t, language, string(axe)) })
	}
}

// TestInChromium tests what needs a browser: the keyboard, JavaScript and print.
func TestInChromium(t *testing.T) {
	w := newWorld(t, nil)
	t.Run("keyboard", func(t *testing.T) { useKeyboard(newPerson(t, w, "fr")) })
	t.Run("paper", func(t *testing.T) { readPaper(newPerson(t, w, "fr")) })
	t.Run("without scripts", func(t *testing.T) { sendsWithoutScripts(newPerson(t, w, "fr")) })
	t.Run("samples of the reference", func(t *testing.T) { copySample(newPerson(t, w, "fr")) })
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
			_,
				_ = io.WriteString(
				rw,
				`<!doctype html><html lang="fr" data-copy="Copier" data-copied="Copié"><link rel="stylesheet" `+
					`href="/docs/style.css">
				<pre class="code"><code>curl</code></pre><script src="/docs/copy.js"></script>`)
		}
	}))
	p.Cleanup(server.Close)
	p.open(server.URL + "/")
	var visible bool
	p.do("copying", chromedp.Evaluate(`document.querySelector(".copy").checkVisibility({opacityProperty: true})`,
		&visible), noted(".copy", "Copié"),
		chromedp.Click(".copy", chromedp.ByQuery), chromedp.Poll(`window.noted`, nil))
	if problems := p.takeProblems(); !visible || len(problems) > 0 {
		p.Errorf("visible %v, %v", visible, problems)
	}
}

// noted sets window.noted once an element has had that text, which may be for a moment only.
func noted(element, text string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`(() => {
		const of = document.querySelector(%s);
		new MutationObserver(() => { window.noted ||= of.textContent === %s; }).observe(of, {childList: true});
	})()`, quoted(element), quoted(text)), nil)
}

// browser is the system's Chromium, which all tests of the package share.
var browser struct {
	once sync.Once
	ctx  context.Context
	end  func()
	err  error
}

// chromium starts the browser once; endChromium ends it after all tests.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path := testenv.Tool(t, "chromium-headless-shell")
	browser.once.Do(func() { browser.ctx, browser.end, browser.err = startChromium(path) })
	if browser.err != nil {
		t.Fatalf("starting Chromium: %v", browser.err)
	}
	return browser.ctx
}

func endChromium() {
	if browser.end != nil {
		browser.end()
	}
}

func startChromium(path string) (ctx context.Context, end func(), err error) {
	profile, err := os.MkdirTemp("", "intumwa-chromium-")
	if err != nil {
		return nil, nil, err
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("lang", "en-US"), chromedp.Flag("disable-features", "Translate,OptimizationHints,MediaRouter"),
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	end = func() {
		_ = chromedp.Cancel(ctx) // waits for the browser's end
		cancel()
		stop()
		for range 100 { // its helper processes may still write
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return ctx, end, chromedp.Run(ctx)
}

// person uses the dashboard in Chromium.
type person struct {
	*testing.T
	w     *world
	ctx   context.Context
	lang  *texts.Language
	width int64 // of the window

	axe       string                 // axe-core, for look
	seen      map[string]bool        // the paths of pages that look has checked
	choosers  chan cdp.BackendNodeID // file fields whose dialog has opened
	downloads string                 // a folder
	complete  sync.Map               // the names of files in it that are complete

	mu       sync.Mutex
	problems []string
}

// newPerson opens a window with its own cookies.
func newPerson(t *testing.T, w *world, language string) *person {
	t.Helper()
	chromium := chromium(t)
	lang, _ := w.d.words.ByTag(language)
	p := &person{T: t, w: w, lang: lang, seen: map[string]bool{}, choosers: make(chan cdp.BackendNodeID, 1),
		downloads: t.TempDir()}
	// A new browser context has no window to open a tab in.
	var own target.ID
	if err := chromedp.Run(chromium, chromedp.ActionFunc(func(ctx context.Context) error {
		ctx = cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser)
		id, err := target.CreateBrowserContext().WithDisposeOnDetach(true).Do(ctx)
		if err == nil {
			own, err = target.CreateTarget("about:blank").WithBrowserContextID(id).WithNewWindow(true).Do(ctx)
		}
		if err == nil {
			err = cdpbrowser.SetDownloadBehavior(cdpbrowser.SetDownloadBehaviorBehaviorAllowAndName).WithBrowserContextID(
				id).WithDownloadPath(p.downloads).WithEventsEnabled(true).Do(ctx)
		}
		return err
	})); err != nil {
		t.Fatalf("opening a window: %v", err)
	}
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithTargetID(own))
	ctx, stop := context.WithTimeout(ctx, 15*time.Minute)
	t.Cleanup(func() { stop(); cancel() })
	p.ctx = ctx
	chromedp.ListenTarget(ctx, p.listen)
	chromedp.ListenBrowser(ctx, func(event any) {
		if e, ok := event.(*cdpbrowser.EventDownloadProgress); ok && e.State == cdpbrowser.DownloadProgressStateCompleted {
			p.complete.Store(e.GUID, true)
		}
	})
	if err := chromedp.Run(ctx); err != nil { // the tab lives as long as the context of its first run
		t.Fatalf("opening a tab: %v", err)
	}
	p.do("opening a tab", log.Enable(), network.Enable(), emulation.SetEmulatedMedia().WithFeatures(
		[]*emulation.MediaFeature{
			{Name: "prefers-reduced-motion", Value: "reduce"}}),
		network.SetExtraHTTPHeaders(network.Headers{"Accept-Language": language}))
	p.size(1280)
	return p
}

// awaited is for a script whose result comes later.
func awaited(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }

// size changes the window's width.
func (p *person) size(width int64) {
	p.Helper()
	p.width = width
	p.do("resizing", emulation.SetDeviceMetricsOverride(width, 860, 1, width < 800))
}

// listen collects console errors and violations of the content security policy.
func (p *person) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		// The browser reports the status of a form with an error, and of the page that is not there.
		refused := e.Entry.Source == log.SourceNetwork &&
			(strings.Contains(e.Entry.Text, "status of 422") || strings.HasSuffix(e.Entry.URL, "/nowhere"))
		if !refused && (e.Entry.Level == log.LevelWarning || e.Entry.Level == log.LevelError) {
			p.problems = append(p.problems, fmt.Sprintf("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *page.EventFileChooserOpened:
		p.choosers <- e.BackendNodeID
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

// sendsWithoutScripts sends a message and follows it where scripts do not run.
func sendsWithoutScripts(p *person) {
	c, _, _ := p.w.customer("plain", "PLAIN", 100)
	p.plant(c)
	p.do("turning scripts off", emulation.SetScriptExecutionDisabled(true))
	p.open("/messages/new")
	p.filled("compose.send", "number", "79000302", "message", "C’est prêt")
	p.press("compose.check")
	p.sees("compose.foreign.text")
	p.press("compose.replace")
	p.press("compose.send")
	p.sees("flash.sent")
	p.w.settle()
	p.press("life.again")
	p.sees("life.sent")
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
		for _, want := range []string{company.Name, "Facture 2026-0147", p.lang.T("statement.amount"),
			"+" + p.lang.Number(1000)} {
			if !strings.Contains(text, want) {
				p.Errorf("%s lacks %q on paper:\n%s", path, want, text)
			}
		}
		for _, key := range []string{"nav.keys", "nav.signout", "frame.menu", "frame.skip", "frame.foot", "statement.csv",
			"statement.show", "sheet.print"} {
			if strings.Contains(text, p.lang.T(key)) {
				p.Errorf("%s has %q on paper", path, p.lang.T(key))
			}
		}
		var over []string
		p.do("measuring", chromedp.Evaluate(`[...document.querySelectorAll("main *")].filter((e) => e.checkVisibility() &&
			(e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1 && `+
			`getComputedStyle(e).overflowX !== "visible")).map((e) => e.outerHTML.slice(0, 100))`, &over))
		if len(over) > 0 {
			p.Errorf("%s is cut off on paper: %s", path, over)
		}
	}
}
