package api

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/text/language"

	"intumwa/accounts/testnumbers"
	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/sms"
	"intumwa/webhooks"
)

// openAPIText describes every endpoint and webhook; describe adds the refusals. The
// tests check every response against the result.
//
//go:embed openapi.json
var openAPIText string

//go:embed docs
var docsFiles embed.FS

// documentedTestSender is the test sender's name in the embedded documents; pages
// replace it by the name that this installation uses.
const documentedTestSender = "INTUMWATEST"

// tokenExample has the form of a token.
const tokenExample = "1|xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

// assets are the files of the reference page.
var assets = map[string]string{"style.css": "text/css; charset=utf-8", "segments.js": "text/javascript; charset=utf-8",
	"page.js": "text/javascript; charset=utf-8",
	"copy.js": "text/javascript; charset=utf-8"}

// otherPages are the pages under /docs, by name: what each status means and costs, the guide to the dashboard, and the
// SMPP server.
var otherPages = []string{"statuses", "guide", "smpp"}

// pages are the documents that describe the API.
type pages struct {
	openAPIDocument func() []byte
	editions        map[string]func() (*edition, error) // the first reader's request makes it
	// replaces the documented test sender and schedule by this installation's
	own *strings.Replacer
}

// edition is the reference in one language.
type edition struct {
	language string
	page     *template.Template
	others   map[string]*template.Template // of otherPages
	content  reference
}

// Languages of the reference, the default first. The API's own texts and the samples are English in all of them.
var editionLanguages = []string{"en", "fr"}

var matcher = language.NewMatcher([]language.Tag{language.English, language.French})

// reference is the data of the page.
type reference struct {
	BaseURL, TestSender, Dashboard string
	Notice                         string // from the operator
	Quota, Replacements, RateLimit int
	Steps                          []step
	Send, Verify, Pull, Code       []sample
	TemplateExample                string
	Vectors                        []webhooks.TestVector
	Sandbox                        []sms.SandboxFate
	Errors                         []row
	Invalid                        string // a 422
	Outcomes                       []outcomeRow
	SendAt, ExpireAt               string // examples in the future
	Endpoints, Hooks               []endpoint
	Stop, Start                    []string
	Validity                       float64 // hours
	Pauses, Timeout                string  // of webhooks
	SMPP                           smppPage
}

// row is a line of the table of errors.
type row struct {
	Status                                int
	Code, Anchor, Text, Cause, Fix, Retry string
}

// step is a step of the quick start.
type step struct{ Title, Text, Command string }

// sample is example code in one programming language.
type sample struct{ Group, Name, Label, Text string }

func newPages(o Options, rateLimit int) *pages {
	if o.RetryDelays == nil {
		o.RetryDelays = documentedDelays
	}
	o.WebhookTimeout = cmp.Or(o.WebhookTimeout, documentedTimeout)
	replaced := []string{documentedTestSender, o.TestSender}
	for i, sentence := range schedules(documentedDelays, documentedTimeout) {
		replaced = append(replaced, sentence, schedules(o.RetryDelays, o.WebhookTimeout)[i])
	}
	p := &pages{editions: map[string]func() (*edition, error){}, own: strings.NewReplacer(replaced...)}
	p.openAPIDocument = sync.OnceValue(func() []byte { return []byte(p.own.Replace(string(describe(openAPIText)))) })
	for _, language := range editionLanguages {
		p.editions[language] = sync.OnceValues(func() (*edition, error) { return p.edition(language, o, rateLimit) })
	}
	return p
}

// edition builds the reference page in a language.
func (p *pages) edition(language string, o Options, rateLimit int) (*edition, error) {
	end := ".html"
	if language != editionLanguages[0] {
		end = "." + language + end
	}
	page, err := template.ParseFS(docsFiles, "docs/page"+end)
	if err != nil {
		return nil, err
	}
	e := &edition{language: language, page: page, others: map[string]*template.Template{}}
	for _, name := range otherPages {
		if e.others[name], err = template.ParseFS(docsFiles, "docs/"+name+end); err != nil {
			return nil, err
		}
	}
	c := &e.content
	c.Outcomes = outcomeRows(o.Refund, language)
	c.TestSender, c.Quota, c.Replacements, c.RateLimit, c.Dashboard, c.Notice = o.TestSender, o.TestQuota,
		testnumbers.MaxReplacements, rateLimit, o.DashboardURL, o.DocsNotice
	c.TemplateExample = `{
  "sender": "ACME",
  "template": "Bonjour {{name}}, votre code est {{ code }}.",
  "recipients": [
    {"phone_number": "+25779123400", "variables": {"name": "Alice", "code": "1234"}},
    {"phone_number": "61 23 45 00", "variables": {"name": null, "code": "5678"}}
  ]
}`
	if c.Send, err = p.samples("send", "sh", "php", "js", "py", "go.txt", "java", "cs"); err != nil {
		return nil, err
	}
	if c.Verify, err = p.samples("verify", "php", "js", "py", "go.txt", "java", "cs"); err != nil {
		return nil, err
	}
	if c.Pull, err = p.samples("pull", "sh", "php", "js", "py", "go.txt", "java", "cs"); err != nil {
		return nil, err
	}
	if c.Code, err = p.samples("code", "sh", "php", "js", "py", "go.txt", "java", "cs"); err != nil {
		return nil, err
	}
	if c.Vectors, err = webhooks.TestVectors(); err != nil {
		return nil, fmt.Errorf("making the test vectors: %w", err)
	}
	c.Sandbox = sms.SandboxFates()
	anchors := map[string]bool{"": true}
	for _, r := range refusals {
		anchor := ""
		if !anchors[r.code] { // the first refusal with the code
			anchor, anchors[r.code] = "error-"+r.code, true
		}
		c.Errors = append(c.Errors, row{r.status, r.code, anchor, p.own.Replace(r.text), r.cause.of(language),
			r.fix.of(language), r.retry.words().of(language)})
	}
	c.Invalid = invalidExample()
	c.Stop, c.Start, c.Validity = o.StopWords, o.StartWords, o.Validity.Hours()
	c.Pauses, c.Timeout = pauses(o.RetryDelays, map[string]string{"en": " and ", "fr": " et "}[language]),
		pause(o.WebhookTimeout)
	if c.SMPP, err = smppPageOf(o.SMPP, language); err != nil {
		return nil, err
	}
	c.Endpoints, c.Hooks, err = endpoints(p.own.Replace(openAPIText), language)
	return e, err
}

// invalidExample is the response to a bulk send with two wrong fields.
func invalidExample() string {
	var p problems
	p.add(ofMessages.numberInvalid)
	p.item = 2
	p.add(itemMessageLong)
	var body bytes.Buffer
	_ = json.Indent(&body, intake.Encode(invalidView{textInvalid, p}), "", "  ") // it was just encoded
	return "HTTP/1.1 422 " + http.StatusText(http.StatusUnprocessableEntity) + "\nX-Error-Code: " + p.code + "\n\n" +
		body.String()
}

// frenchSpaces puts non-breaking spaces before French punctuation.
var frenchSpaces = strings.NewReplacer(" ;", "\u00a0;", " :", "\u00a0:", " ?", "\u00a0?")

// of returns the sentence in a language.
func (w words) of(language string) string {
	if language == "fr" {
		return frenchSpaces.Replace(w.fr)
	}
	return w.en
}

var languages = map[string]string{"sh": "curl", "php": "PHP", "js": "JavaScript", "py": "Python", "go.txt": "Go",
	"java": "Java", "cs": ".NET"}

func (p *pages) samples(group string, extensions ...string) (all []sample, err error) {
	for _, extension := range extensions {
		text, err := docsFiles.ReadFile("docs/samples/" + group + "." + extension)
		if err != nil {
			return nil, fmt.Errorf("reading a sample: %w", err)
		}
		name, _, _ := strings.Cut(extension, ".")
		all = append(all, sample{group, name, languages[extension], p.own.Replace(string(text))})
	}
	return all, nil
}

// steps reads the quick start: a title after "# ", a line of text, commands.
func (p *pages) steps(language, baseURL string) (steps []step) {
	name := "docs/quickstart.txt"
	if language != editionLanguages[0] {
		name = "docs/quickstart." + language + ".txt"
	}
	text, _ := docsFiles.ReadFile(name) // embedded
	filled := strings.NewReplacer("{{"+".BaseURL}}", baseURL, "{{"+".TokenExample}}", tokenExample).Replace(
		p.own.Replace(string(text)))
	for part := range strings.SplitSeq(strings.TrimSpace(filled), "\n\n") {
		title, rest, _ := strings.Cut(strings.TrimPrefix(part, "# "), "\n")
		line, command, _ := strings.Cut(rest, "\n")
		steps = append(steps, step{title, line, command})
	}
	return steps
}

// openAPI is GET /v1/openapi.json. Scripts of other sites may read it (CORS).
func (p *pages) openAPI(c *gin.Context) {
	c.Header("Access-Control-Allow-Origin", "*")
	c.Header("Cache-Control", "public, max-age=300")
	sendAt, expireAt := exampleTimes()
	document := bytes.ReplaceAll(p.openAPIDocument(), []byte(documentedSendAt), []byte(sendAt))
	c.Data(http.StatusOK, "application/json", bytes.ReplaceAll(document, []byte(documentedExpireAt), []byte(expireAt)))
}

// The times of scheduled sends in the embedded document. The served one has later ones: a send_at in the past is
// refused.
const (
	documentedSendAt   = "2026-03-01T09:00:00+02:00"
	documentedExpireAt = "2026-03-01T12:00:00+02:00"
)

// exampleTimes are examples of send_at and expire_at: tomorrow morning in Burundi.
func exampleTimes() (sendAt, expireAt string) {
	year, month, day := postgres.Now().In(sms.Burundi).Date()
	at := time.Date(year, month, day+1, 9, 0, 0, 0, sms.Burundi)
	return at.Format(time.RFC3339), at.Add(3 * time.Hour).Format(time.RFC3339)
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9.:\[\]-]{1,255}$`)

// docs is GET /docs: the reference page, with the address that the client used.
func (p *pages) docs(c *gin.Context) {
	p.show(c, func(e *edition) *template.Template { return e.page })
}

// show responds with a page in the language of the parameter lang, else in the browser's.
func (p *pages) show(c *gin.Context, which func(*edition) *template.Template) {
	made := p.editions[c.Query("lang")]
	if made == nil {
		made = p.editions[preferred(strings.Join(c.Request.Header.Values("Accept-Language"), ","))]
	}
	e, err := made()
	if err != nil { // tests make every edition
		writeRefusal(c, serverError)
		return
	}
	content := e.content
	content.BaseURL = baseURL(c)
	content.Steps = p.steps(e.language, content.BaseURL)
	content.SendAt, content.ExpireAt = exampleTimes()
	var out bytes.Buffer
	if err := which(e).Execute(&out, content); err != nil {
		writeRefusal(c, serverError)
		return
	}
	p.harden(c)
	c.Header("Content-Language", e.language)
	c.Header("Vary", "Accept-Language")
	c.Data(http.StatusOK, "text/html; charset=utf-8", out.Bytes())
}

// preferred returns the language of the reference that an Accept-Language header prefers, else the default.
func preferred(header string) string {
	wanted, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return editionLanguages[0]
	}
	_, i, _ := matcher.Match(wanted...)
	return editionLanguages[i]
}

// baseURL returns the address of the API that the client used.
func baseURL(c *gin.Context) string {
	host, scheme := c.Request.Host, "https"
	if c.Request.TLS == nil && c.GetHeader("X-Forwarded-Proto") != "https" {
		scheme = "http"
	}
	if !hostName.MatchString(host) {
		host = "localhost"
	}
	return scheme + "://" + host + "/v1"
}

// asset is GET /docs/{asset}: a file or another page.
func (p *pages) asset(c *gin.Context) {
	name := c.Param("asset")
	if slices.Contains(otherPages, name) {
		p.show(c, func(e *edition) *template.Template { return e.others[name] })
		return
	}
	kind, known := assets[name]
	if !known {
		writeRefusal(c, notFound)
		return
	}
	text, err := docsFiles.ReadFile("docs/" + name)
	if err != nil {
		writeRefusal(c, notFound)
		return
	}
	p.harden(c)
	c.Data(http.StatusOK, kind, text)
}

// harden restricts the page to files of this server.
func (p *pages) harden(c *gin.Context) {
	c.Header("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("Cache-Control", "private, max-age=60")
}
