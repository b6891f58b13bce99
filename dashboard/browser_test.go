package dashboard

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"intumwa/dashboard/words"
	"intumwa/internal/testenv"
)

// patience is how long one step in the browser may take.
const patience = 30 * time.Second

var axeSource = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("../scripts/axe.sh").Output()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(strings.TrimSpace(string(out)))
	return string(text), err
})

// startChromium runs the system's Chromium until the test ends.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	path := testenv.Tool(t, "chromium")
	if _, err := axeSource(); err != nil {
		testenv.Lacks(t, "axe-core cannot be had: "+err.Error())
	}
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
		_ = chromedp.Cancel(ctx) // waits for the browser
		cancel()
		end()
		for range 100 { // its helpers may write a moment longer
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

// person is one who uses the dashboard with a browser: own cookies, a language, perhaps without JavaScript.
type person struct {
	*testing.T
	w      *world
	ctx    context.Context
	name   string // of this walk, in the pictures' names
	lang   *words.Language
	script bool

	mu       sync.Mutex
	problems []string
}

func newPerson(chromium context.Context, t *testing.T, w *world, language string, script bool) *person {
	t.Helper()
	lang, _ := w.d.words.ByTag(language)
	// A window of its own: a fresh browser context has none in which a tab could open.
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
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(func() { stop(); cancel() })
	p := &person{T: t, w: w, ctx: ctx, name: language, lang: lang, script: script}
	if !script {
		p.name += "-noscript"
	}
	chromedp.ListenTarget(ctx, p.listen)
	if err := chromedp.Run(ctx); err != nil { // the context of a tab's first run is the tab's life
		t.Fatalf("opening a tab: %v", err)
	}
	p.do("opening a tab", log.Enable(), network.Enable(), network.SetExtraHTTPHeaders(network.Headers{"Accept-Language": language}),
		emulation.SetScriptExecutionDisabled(!script))
	p.size(1280)
	return p
}

func (p *person) size(width int64) {
	p.Helper()
	p.do("resizing", emulation.SetDeviceMetricsOverride(width, 860, 1, width < 800))
}

// listen gathers what a page must not do: errors on the console, and content that its policy refuses.
func (p *person) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		document := e.Entry.Source == log.SourceNetwork && !strings.Contains(e.Entry.URL, "/assets/")
		if (e.Entry.Level == log.LevelWarning || e.Entry.Level == log.LevelError) && !document { // a page that says 422 is meant to
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

func (p *person) do(what string, actions ...chromedp.Action) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.Fatalf("%s, %s: %v", p.name, what, err)
	}
}

// open goes to a page, by path or whole address.
func (p *person) open(address string) {
	p.Helper()
	if strings.HasPrefix(address, "/") {
		address = p.w.url + address
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Navigate(address)); err != nil {
		p.Fatalf("%s: opening %s: %v", p.name, address, err)
	}
}

// fill puts a text into the field with that name.
func (p *person) fill(field, text string) {
	p.Helper()
	selector := `main [name="` + field + `"]:not([type=hidden])`
	p.do("filling "+field, chromedp.WaitVisible(selector, chromedp.ByQuery),
		chromedp.Evaluate("{ const field = document.querySelector("+strconv.Quote(selector)+"); field.focus(); field.select() }", nil),
		input.InsertText(text))
}

// press presses the button or follows the link that says a text, given by its key, and waits for the next page.
func (p *person) press(key string, args ...any) {
	p.Helper()
	p.pressText(p.lang.T(key, args...))
}

// pressText is press of what says a text that is none of the catalogue's.
func (p *person) pressText(text string) {
	p.Helper()
	where := fmt.Sprintf(`(//*[self::button or self::a][normalize-space()=%s][not(ancestor::details[not(@open)])])[1]`, quoted(text))
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, inSight(where), chromedp.Click(where, chromedp.BySearch)); err != nil {
		p.Fatalf("%s: pressing %q on %s: %v\n%s", p.name, text, p.where(), err, p.read())
	}
}

// inSight scrolls what is to be pressed to the middle of the window, as people do when it
// is under a notice that stays at the top.
func inSight(where string) chromedp.Action {
	return chromedp.Tasks{
		chromedp.WaitVisible(where, chromedp.BySearch),
		chromedp.Evaluate(fmt.Sprintf(`document.evaluate(%q, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE, null).singleNodeValue?.scrollIntoView({block: "center"})`, where), nil),
	}
}

// unfold opens the details whose summary says a text.
func (p *person) unfold(key string) {
	p.Helper()
	p.do("unfolding "+key, chromedp.Click(fmt.Sprintf(`//main//summary[normalize-space()=%s]`, quoted(p.lang.T(key))), chromedp.BySearch))
}

func quoted(text string) string { return `"` + text + `"` } // no text of ours has such quotes

// where is the path of the page that is open.
func (p *person) where() string {
	p.Helper()
	var address string
	p.do("reading the address", chromedp.Location(&address))
	return strings.TrimPrefix(address, p.w.url)
}

// read is what the page says.
func (p *person) read() (text string) {
	p.Helper()
	p.do("reading the page", chromedp.Evaluate(`document.body.innerText`, &text))
	return text
}

// sees wants the page to say a text, given by its key.
func (p *person) sees(key string, args ...any) {
	p.Helper()
	if text := p.lang.T(key, args...); !strings.Contains(p.read(), text) {
		p.Fatalf("%s: %s does not say %q:\n%s", p.name, p.where(), text, p.read())
	}
}

// axe are the rules' findings on the page that is open.
const axe = `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v =>
	({id: v.id, help: v.help, nodes: v.nodes.map(n => n.html + " " + (n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? ""))}))))`

// look holds the page that is open to everything that every page is held to, and takes its pictures.
func (p *person) look(name string) {
	p.Helper()
	text := p.read()
	if strings.Contains(text, words.Missing) {
		p.Errorf("%s: %s lacks texts:\n%s", p.name, name, text)
	}
	var html string
	p.do("reading the page", chromedp.Evaluate(`document.documentElement.outerHTML`, &html)) // by no node's number: those go with a page
	if len(html) > 100_000 {
		p.Errorf("%s: %s has %d octets", p.name, name, len(html))
	}
	source, _ := axeSource()
	for _, as := range []struct {
		width int64
		color string
	}{{1280, "dark"}, {1280, "light"}, {360, "light"}, {320, "light"}} {
		width := as.width
		p.size(width)
		p.do("choosing colours", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: as.color}, {Name: "prefers-reduced-motion", Value: "reduce"}})) // no colour on its way to another
		var over int64
		p.do("measuring", chromedp.Evaluate(`document.scrollingElement.scrollWidth - innerWidth`, &over))
		if over > 0 {
			p.Errorf("%s: %s is %d px too wide for %d", p.name, name, over, width)
		}
		if width == 320 || !p.script { // axe needs JavaScript; the markup is the same without
			continue
		}
		if p.lang.Tag != "fr" && (width != 1280 || as.color != "light") { // colours and widths are no matter of language
			continue
		}
		var found string
		p.do("running axe", chromedp.Evaluate(source, nil), chromedp.Evaluate(axe, &found,
			func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
		var violations []any
		if err := json.Unmarshal([]byte(found), &violations); err != nil || len(violations) > 0 {
			p.Errorf("%s: %s at %d px, %s: axe finds (%v) %s", p.name, name, width, as.color, err, found)
		}
		p.shoot(fmt.Sprintf("%s-%s-%d-%s.png", name, p.name, width, as.color))
	}
	p.size(1280)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.Errorf("%s: %s: %s", p.name, name, problem)
	}
	p.problems = nil
}

// shoot takes a picture: go test -artifacts keeps it.
func (p *person) shoot(file string) {
	p.Helper()
	if kept := flag.Lookup("test.artifacts"); kept == nil || kept.Value.String() != "true" {
		return // nobody would see it
	}
	var picture []byte
	p.do("taking a picture", chromedp.ActionFunc(func(ctx context.Context) (err error) {
		picture, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).Do(ctx)
		return err
	}))
	if err := os.WriteFile(filepath.Join(p.ArtifactDir(), file), picture, 0o644); err != nil {
		p.Fatal(err)
	}
}
