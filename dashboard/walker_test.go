package dashboard

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"intumwa/dashboard/words"
)

// walker is a browser without JavaScript: it follows the open page's links and submits its forms.
type walker struct {
	*client

	lang   *words.Language
	page   answer
	doc    *html.Node
	filled map[string]string // fields of the open page
	looks  []look
}

// look is a page as the walker got it.
type look struct{ name, html string }

func newWalker(t *testing.T, w *world, language string) *walker {
	t.Helper()
	lang, _ := w.d.words.ByTag(language)
	p := &walker{client: newClient(w), lang: lang}
	p.language = language
	return p
}

// visit keeps the page of a response, after its redirects.
func (p *walker) visit(a answer) {
	p.t.Helper()
	for range 3 {
		if a.StatusCode != http.StatusSeeOther {
			break
		}
		a = p.do(http.MethodGet, a.Header.Get("Location"), nil)
	}
	doc, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		p.t.Fatal(err)
	}
	p.page, p.doc, p.filled = a, doc, map[string]string{}
}

func (p *walker) open(path string) {
	p.t.Helper()
	p.visit(p.do(http.MethodGet, path, nil))
}

// where returns the open page's path.
func (p *walker) where() string { return p.page.Request.URL.RequestURI() }

// fill types into a field, which the page must have.
func (p *walker) fill(field, text string) {
	p.t.Helper()
	if p.find(func(n *html.Node) bool {
		return attribute(n, "name") == field && attribute(n, "type") != "hidden" && slices.Contains([]string{"input", "select", "textarea"}, n.Data)
	}) == nil {
		p.t.Fatalf("%s has no field %s:\n%s", p.where(), field, p.text())
	}
	p.filled[field] = text
}

// press follows the first link with that text, or submits the form of the first button with it.
func (p *walker) press(key string, args ...any) {
	p.t.Helper()
	text := dense(p.lang.T(key, args...))
	n := p.find(func(n *html.Node) bool { return (n.Data == "a" || n.Data == "button") && dense(textOf(n)) == text })
	if n == nil {
		p.t.Fatalf("%s has no link and no button %q:\n%s", p.where(), p.lang.T(key, args...), p.text())
	}
	if n.Data == "a" {
		p.open(attribute(n, "href"))
		return
	}
	form := n
	if id := attribute(n, "form"); id != "" {
		form = p.find(func(n *html.Node) bool { return attribute(n, "id") == id })
	}
	for form != nil && form.Data != "form" {
		form = form.Parent
	}
	if form == nil {
		p.t.Fatalf("%s: %q is in no form", p.where(), text)
	}
	values := p.values(form)
	if name := attribute(n, "name"); name != "" {
		values.Set(name, attribute(n, "value"))
	}
	action := attribute(form, "action")
	if action == "" {
		action = p.where()
	}
	switch {
	case attribute(form, "method") == "get":
		p.open(action + "?" + values.Encode())
	case attribute(form, "enctype") != "":
		name := "people.csv"
		if strings.HasPrefix(p.filled["file"], "%PDF") {
			name = "certificate.pdf"
		}
		p.visit(p.uploadAs(action, values, name, p.filled["file"]))
	default:
		p.visit(p.do(http.MethodPost, action, values))
	}
}

// submit fills fields, given as names and values, presses a button, and expects the text of a key on the next
// page.
func (p *walker) submit(button, sees string, fields ...string) {
	p.t.Helper()
	for i := 0; i < len(fields); i += 2 {
		p.fill(fields[i], fields[i+1])
	}
	p.press(button)
	p.sees(sees)
}

// values returns a form's fields as on the page or as filled.
func (p *walker) values(form *html.Node) url.Values {
	values := url.Values{}
	each(form, func(n *html.Node) {
		name := attribute(n, "name")
		if name == "" || attribute(n, "type") == "file" {
			return
		}
		switch n.Data {
		case "input":
			values.Set(name, attribute(n, "value"))
		case "textarea":
			values.Set(name, strings.TrimPrefix(textOf(n), "\n"))
		case "select":
			values.Set(name, chosen(n))
		default:
			return
		}
		if text, ok := p.filled[name]; ok && attribute(n, "type") != "hidden" {
			values.Set(name, text)
		}
	})
	return values
}

// chosen returns a select's value: the selected option, or the first.
func chosen(list *html.Node) (value string) {
	first := true
	each(list, func(n *html.Node) {
		if n.Data != "option" || !first && !has(n, "selected") {
			return
		}
		if first = false; has(n, "value") {
			value = attribute(n, "value")
		} else {
			value = textOf(n)
		}
	})
	return value
}

// text returns the page's text.
func (p *walker) text() string {
	return strings.Join(strings.Fields(textOf(p.find(func(n *html.Node) bool { return n.Data == "body" }))), " ")
}

// sees expects the text of a key on the page.
func (p *walker) sees(key string, args ...any) {
	p.t.Helper()
	p.reads(p.lang.T(key, args...))
}

// reads expects texts on the page.
func (p *walker) reads(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		if !strings.Contains(dense(p.text()), dense(text)) {
			p.t.Fatalf("%s lacks %q:\n%s", p.where(), text, p.text())
		}
	}
}

// look keeps the open page for the browser.
func (p *walker) look(name string) {
	p.t.Helper()
	if p.page.StatusCode >= 500 || strings.Contains(p.page.body, words.Missing) || len(p.page.body) > 100_000 {
		p.t.Errorf("%s: status %d, %d bytes, or texts are missing:\n%s", name, p.page.StatusCode, len(p.page.body), p.text())
	}
	p.looks = append(p.looks, look{name, p.page.body})
}

// upload submits a form with a CSV file.
func (c *client) upload(path string, values url.Values, file string) answer {
	c.t.Helper()
	return c.uploadAs(path, values, "people.csv", file)
}

// uploadAs submits a form with a file of that name.
func (c *client) uploadAs(path string, values url.Values, name, file string) answer {
	c.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for field := range values {
		_ = form.WriteField(field, values.Get(field))
	}
	part, err := form.CreateFormFile("file", name)
	if err == nil {
		_, err = io.WriteString(part, file)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return c.request(http.MethodPost, path, &body, "Content-Type", form.FormDataContentType())
}

// find returns the first element that matches.
func (p *walker) find(is func(*html.Node) bool) (found *html.Node) {
	each(p.doc, func(n *html.Node) {
		if found == nil && n.Type == html.ElementNode && is(n) {
			found = n
		}
	})
	return found
}

func each(n *html.Node, do func(*html.Node)) {
	for d := range n.Descendants() {
		do(d)
	}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func textOf(n *html.Node) string {
	var text strings.Builder
	each(n, func(d *html.Node) {
		if d.Type == html.TextNode {
			text.WriteString(d.Data)
		}
	})
	return text.String()
}

// dense returns a text without white space.
func dense(text string) string { return strings.Join(strings.Fields(text), "") }
