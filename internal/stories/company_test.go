package stories

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// company is a customer: a user with a token, a sender and an optional webhook endpoint.
type company struct {
	w        *world
	id       int64
	email    string
	password string // of the dashboard
	sender   string
	tokenID  int64
	token    string
	secret   string // of its webhook endpoint
	granted  int64  // credits
}

// company makes an approved and verified customer with a webhook endpoint that answers
// 200.
func (w *world) company(sender string, credits int64) *company {
	w.t.Helper()
	c := w.silentCompany(sender, credits)
	c.listens(ok)
	return c
}

// silentCompany makes one without a webhook endpoint.
func (w *world) silentCompany(sender string, credits int64) *company {
	w.t.Helper()
	password := word()
	c := &company{w: w, sender: sender, email: word() + "@example.com", password: password, granted: credits}
	var user struct {
		UserID int64 `json:"user_id"`
	}
	w.orders(&user, password+"\n", "user", "create", "--email", c.email, "--name", sender, "--password-stdin")
	var token struct {
		TokenID int64  `json:"token_id"`
		Token   string `json:"token"`
	}
	w.orders(&token, "", "token", "create", "--user", c.email, "--name", "story")
	c.tokenID, c.token = token.TokenID, token.Token
	var made struct {
		CompanyID int64 `json:"company_id"`
		Credits   int64 `json:"credits"`
	}
	w.orders(&made, "", "company", "create", "--owner", c.email, "--name", sender, "--approved", "--verified",
		"--credits", strconv.FormatInt(credits, 10))
	if made.Credits != credits {
		w.t.Fatalf("a company that begins with %d credits has %d", credits, made.Credits)
	}
	c.id = made.CompanyID
	var named struct {
		Approved bool `json:"approved"`
	}
	w.orders(&named, "", "sender", "create", "--company", c.number(), "--name", sender, "--approved")
	if !named.Approved {
		w.t.Fatal("an approved sender is not approved")
	}
	_, afterBar, _ := strings.Cut(c.token, "|")
	w.secret(password, c.token, afterBar)
	w.mu.Lock()
	w.companies = append(w.companies, c)
	w.mu.Unlock()
	return c
}

func (c *company) number() string { return strconv.FormatInt(c.id, 10) }

// listens gives the company an endpoint with this handler.
func (c *company) listens(answer http.HandlerFunc) {
	c.w.t.Helper()
	var set struct {
		URL    string `json:"url"`
		Secret string `json:"secret"`
		Active bool   `json:"active"`
	}
	c.w.orders(&set, "", "webhook", "set", "--company", c.number(), "--url", c.w.inbox.of(c, answer), "--active=true")
	if set.Secret == "" {
		set.Secret = c.secret // shown once
	}
	if !set.Active || !strings.HasPrefix(set.Secret, "whsec_") {
		c.w.t.Fatalf("the endpoint is not as ordered: active %v", set.Active)
	}
	c.secret = set.Secret
	c.w.secret(set.Secret, strings.TrimPrefix(set.Secret, "whsec_"))
}

// answer is the response to a send request.
type answer struct {
	err    error // no response
	status int
	header http.Header
	body   []byte

	ID             string `json:"id"`
	ItemCount      int    `json:"item_count"`
	RemainingItems int64  `json:"remaining_items"`
	Message        string `json:"message"`
}

// sends sends a message that must be accepted.
func (c *company) sends(to, text string) answer {
	c.w.t.Helper()
	a := c.tries(to, text)
	if a.err != nil || a.status != http.StatusOK {
		c.w.t.Fatalf("a send was answered %d %s %v, want 200", a.status, a.body, a.err)
	}
	return a
}

// tries sends a message; headers are alternating names and values.
func (c *company) tries(to, text string, headers ...string) answer {
	return c.triesAt(c.w.gateway, to, text, headers...)
}

// triesAt sends a message to one of several gateways.
func (c *company) triesAt(g *gateway, to, text string, headers ...string) answer {
	c.plant(to, text)
	return c.postsMessage(g, to, text, headers...)
}

// plant adds the number and the text to what logs must not contain.
func (c *company) plant(to, text string) {
	if len(text) >= 8 {
		c.w.secret(text)
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if len(to) >= 8 {
		c.w.used(to)
	}
}

// calls makes an API request; headers are alternating names and values.
func (c *company) calls(g *gateway, method, path string, body []byte, headers ...string) (a answer) {
	request, err := http.NewRequest(method, "http://"+g.api+path, bytes.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Accept", "application/json")
	if len(body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.w.client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	a.status, a.header = response.StatusCode, response.Header
	a.body, a.err = io.ReadAll(response.Body)
	return a
}

// posts sends a body unchanged.
func (c *company) posts(g *gateway, body []byte, headers ...string) answer {
	a := c.calls(g, http.MethodPost, "/v1/sms", body, headers...)
	if a.err == nil {
		a.err = json.Unmarshal(a.body, &a)
	}
	return a
}

// requests makes a request to the first gateway and decodes its response, which must be 200. After a 429 it waits.
func (c *company) requests(method, path string, body, result any) {
	c.w.t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			c.w.t.Fatal(err)
		}
	}
	var a answer
	c.w.eventually(2*time.Minute, method+" "+path+" need not wait", func() bool { // a rate window is one minute
		a = c.calls(c.w.gateway, method, path, text)
		return a.status != http.StatusTooManyRequests
	})
	if a.err == nil && a.status == http.StatusOK {
		a.err = json.Unmarshal(a.body, result)
	}
	if a.err != nil || a.status != http.StatusOK {
		c.w.t.Fatalf("%s %s was answered %d %s, %v", method, path, a.status, a.body, a.err)
	}
}

// bulk sends n messages in batches of up to 500, with more fields. It returns the batches' ids and the first word of
// all texts.
func (c *company) bulk(n int, more tree) (ids []string, mark string) {
	c.w.t.Helper()
	mark = word()
	c.w.secret(mark)
	for from := 0; from < n; from += 500 {
		list := make([]tree, min(500, n-from))
		for i := range list {
			list[i] = tree{"phone_number": c.w.subscriber(500_000 + from + i), "message": mark + " " + strconv.Itoa(from+i)}
		}
		var sent struct {
			ID string `json:"batch_id"`
		}
		c.requests(http.MethodPost, "/v1/sms/bulk", tree{"sender": c.sender, "messages": list}.over(more), &sent)
		ids = append(ids, sent.ID)
	}
	return ids, mark
}

// credits is the company's balance in the database.
func (c *company) credits() int64 {
	c.w.t.Helper()
	return scalar[int64](c.w, `SELECT credits FROM balances WHERE company_id = $1`, c.id)
}

// entries lists the company's ledger as "kind amount", oldest first.
func (c *company) entries() []string {
	c.w.t.Helper()
	return scalar[[]string](c.w, `SELECT coalesce(array_agg(kind || ' ' || amount ORDER BY id), '{}') FROM ledger
		WHERE company_id = $1`, c.id)
}

// postsMessage sends a message whose text and number are already planted.
func (c *company) postsMessage(g *gateway, to, text string, headers ...string) answer {
	body, err := json.Marshal(map[string]string{"phone_number": to, "sender": c.sender, "message": text})
	if err != nil {
		return answer{err: err}
	}
	return c.posts(g, body, headers...)
}
