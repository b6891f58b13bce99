package dashboard

import (
	"bytes"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// client is a user, or an attacker, without a browser. It follows no redirect.
type client struct {
	t    *testing.T
	w    *world
	http *http.Client

	language string
	address  string // in X-Forwarded-For
}

func newClient(w *world) *client {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return &client{w.t, w, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, "en", "192.0.2.1"}
}

// answer is a response, completely read.
type answer struct {
	*http.Response
	body string
}

func (c *client) do(method, path string, form url.Values, headers ...string) answer {
	c.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	if form != nil {
		headers = append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)
	}
	return c.request(method, path, body, headers...)
}

func (c *client) request(method, path string, body io.Reader, headers ...string) answer {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.w.url+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Accept-Language", c.language)
	r.Header.Set("X-Forwarded-For", c.address)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{response, string(text)}
}

func (c *client) get(path string) answer {
	c.t.Helper()
	return c.do(http.MethodGet, path, nil)
}

func (c *client) post(path string, pairs ...string) answer {
	c.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return c.do(http.MethodPost, path, form)
}

func (c *client) signIn(email string) {
	c.t.Helper()
	if a := c.post("/sign-in", "email", email, "password", testPassword); a.StatusCode != http.StatusSeeOther {
		c.t.Fatalf("signing in: %d\n%s", a.StatusCode, a.body)
	}
}

// plant puts a session's token into the client's browser.
func (c *client) plant(token string) { c.plantCookie("intumwa-session", token) }

func (c *client) plantCookie(name, value string) {
	c.t.Helper()
	address, err := url.Parse(c.w.url)
	if err != nil {
		c.t.Fatal(err)
	}
	c.http.Jar.SetCookies(address, []*http.Cookie{{Name: name, Value: value, Path: "/"}}) //nolint:gosec // in a test only
}

// cookie returns the value of the client's cookie, or "".
func (c *client) cookie(name string) string {
	c.t.Helper()
	address, err := url.Parse(c.w.url)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, cookie := range c.http.Jar.Cookies(address) {
		if cookie.Name == name {
			return cookie.Value
		}
	}
	return ""
}

var nextPage = regexp.MustCompile(`href="([^"]*)" rel="next"`)

// pages returns the pages of a list, from the first path on.
func (c *client) pages(path string) (all []answer) {
	c.t.Helper()
	for path != "" {
		a := c.get(path)
		c.wants(a, http.StatusOK)
		if all = append(all, a); len(all) > 10 {
			c.t.Fatalf("the pages do not end: %s", path)
		}
		path = ""
		if next := nextPage.FindStringSubmatch(a.body); next != nil {
			path = html.UnescapeString(next[1])
		}
	}
	return all
}

// wants ends the test on any other response.
func (c *client) wants(a answer, status int, texts ...string) {
	c.t.Helper()
	if a.StatusCode != status {
		c.t.Fatalf("%s %s: %d, want %d\n%s", a.Request.Method, a.Request.URL, a.StatusCode, status, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			c.t.Fatalf("%s %s lacks %q\n%s", a.Request.Method, a.Request.URL, text, a.body)
		}
	}
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
