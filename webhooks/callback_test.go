package webhooks

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// The escapes are those of urltrans_fill_escape_codes in gw/urltrans.c of Kannel 1.4.5, of which a report fills some.
func TestCheckCallback(t *testing.T) {
	public := New(nil, Options{})
	private := New(nil, Options{AllowPrivate: true})
	for _, each := range []struct {
		url    string
		w      *Webhooks
		reason string
	}{
		{"https://example.com/c/kn/7/status?uuid=1&status=%d", public, ""}, // RapidPro courier, handlers/kannel
		{"https://example.com/dlr?t=%d&p=%p&P=%P&q=%q&Q=%Q&t=%t&T=%T&a=%a&A=%A&b=%b&f=%F&i=%i&I=%I", public, ""},
		{"https://example.com/dlr?name=a%20b%3Dc&off=50%%", public, ""},
		{"https://example.com/%d/%p", public, ""},
		{"http://example.com/dlr?t=%d", public, BadScheme},
		{"http://example.com/dlr?t=%d", private, ""},
		{"http://127.0.0.1:8000/dlr?t=%d", private, ""},
		{"https://127.0.0.1/dlr?t=%d", public, BadAddress},
		{"https://169.254.169.254/latest?t=%d", public, BadAddress},
		{"https://localhost/?%d", public, BadAddress},
		{"https://example.com:8443/?%d", public, BadPort},
		{"https://user:password@example.com/?%d", public, BadUser},
		{"https://example.com/?%d#top", public, BadFragment},
		{"ftp://example.com/%d", public, BadScheme},
		{"https://%p.example.com/", public, BadCallback},
		{"https://example.com%d", public, BadCallback},
		{"https://example.com/?k=%k&s=%s&r=%r&z=%z", public, ""}, // nothing stands for them in a report
		{"https://example.com/?C=%C&o=%o&u=%u&n=%n&c=%c&m=%m&B=%B&f=%f&D=%D", public, ""},
		{"https://example.com/?name=%C3%A9", public, ""}, // in Kannel the charset and a 3, the reply and a 9
		{"https://example.com/?a=%d&b=%", public, ""},
		{"https://example.com/?off=100%&a=%5", public, ""},
		{"https://example.com/?%#smpp#tag#", public, BadFragment},
		{"https://example.com/5%%0", public, BadURL},
		{"https://example.com/a b", public, BadURL},
		{"https://example.com/\r\nX: y", public, BadURL},
		{"https://example.com/?" + strings.Repeat("x", maxURLLength), public, BadURL},
		{"https://example.com/?" + strings.Repeat("%d", maxURLLength), public, BadURL}, // an escape counts too
		{"https://example.com/?" + strings.Repeat("%p", 100), public, BadURL},          // as much as what stands for it
		{"https://example.com/?" + strings.Repeat("%%", maxURLLength), public, BadURL},
		{"https://example.com/%%%dff", public, BadURL}, // %1f, or %8f: who knows what stands there
		{"", public, BadURL},
	} {
		err := each.w.CheckCallback(each.url)
		if refusal, _ := errors.AsType[sms.Refusal](err); refusal.Reason != each.reason {
			t.Errorf("%s: %v, want %q", each.url, err, each.reason)
		}
	}
}

// calls receives callbacks.
type calls struct {
	*sink
	mu   sync.Mutex
	seen []string
}

func newCalls(t *testing.T, answer http.HandlerFunc) *calls {
	c := new(calls)
	c.sink = newSink(t, func(rw http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.seen = append(c.seen, r.Method+" "+r.RequestURI)
		c.mu.Unlock()
		if answer != nil {
			answer(rw, r)
		}
	})
	return c
}

func (c *calls) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen)
}

func inTx(t *testing.T, w *Webhooks, do func(ctx context.Context, tx pgx.Tx) error) {
	t.Helper()
	if err := postgres.InTx(t.Context(), w.pool.(*pgxpool.Pool),
		func(tx pgx.Tx) error { return do(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, w *Webhooks, message int64, mask int, url string) {
	t.Helper()
	inTx(t, w, func(ctx context.Context, tx pgx.Tx) error {
		return Expect(ctx, tx, []Expected{{CompanyID: 7, MessageID: message, Number: "+25779123456",
			Callback: Callback{URL: url, Mask: mask, Account: "INVéd", Service: "7", Billing: "x%d"}.For("+25779123456", "ACME",
				"01J")}})
	})
}

func submitted(t *testing.T, w *Webhooks, messages ...int64) {
	t.Helper()
	inTx(t, w, func(ctx context.Context, tx pgx.Tx) error { return w.Submitted(ctx, tx, messages) })
}

func final(message int64, name string, unsubmitted bool) Event {
	return Event{CompanyID: 7, MessageID: message, Name: name, PhoneNumber: "+25779123456", Unsubmitted: unsubmitted,
		Callback: true,
		At:       time.Date(2026, 3, 1, 8, 2, 11, 0, time.UTC)}
}

// Which reports a mask asks for: the bits of dlr-mask in Kannel's user guide, table 7-17.
func TestCallbackMasks(t *testing.T) {
	w := New(batchPool(t), quickly())
	run(t, w)
	for i, each := range []struct {
		mask      int
		submitted bool
		final     Event
		want      string
	}{
		{27, true, final(0, Sent, false), "8 1"}, // RapidPro courier's default
		{31, true, final(0, Failed, false), "8 2"},
		{31, false, final(0, Failed, true), "16"},
		{27, false, final(0, Failed, true), "16"},
		{3, true, final(0, Sent, false), "1"},
		{3, true, final(0, Failed, false), "2"},
		{3, false, final(0, Failed, true), "2"}, // nothing else would tell of it
		{1, true, final(0, Failed, false), ""},
		{2, true, final(0, Sent, false), ""},
		{8, true, final(0, Sent, false), "8"},
		{16, true, final(0, Failed, false), ""},
		{4, true, final(0, Sent, false), ""},
	} {
		message := int64(i + 1)
		c := newCalls(t, nil)
		each.final.MessageID = message
		expect(t, w, message, each.mask, c.URL+"/%d")
		var want []string
		for _, report := range strings.Fields(each.want) {
			want = append(want, "GET /"+report)
		}
		if each.submitted {
			submitted(t, w, message)
			submitted(t, w, message) // by a second attempt: told once
			if strings.HasPrefix(each.want, "8") {
				eventually(t, "the call about the submit", func() bool {
					found, err := w.callbacks(t.Context(), 7, message)
					return err == nil && len(found) == 1 && found[0].State == StateDelivered
				})
			}
		}
		enqueueAll(t, w, []Event{each.final})
		var left int
		eventually(t, "the calls of mask "+each.want, func() bool { return len(c.all()) >= len(want) })
		if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM webhook_callbacks`).Scan(&left); err != nil ||
			left != 0 {
			t.Errorf("%d callbacks are left, %v", left, err)
		}
		eventually(t, "all delivered", func() bool {
			found, err := w.callbacks(t.Context(), 7, message)
			return err == nil && len(found) == len(want) &&
				!slices.ContainsFunc(found, func(d Delivery) bool { return d.State != StateDelivered || d.MessageID != message })
		})
		if got := c.all(); !slices.Equal(got, want) {
			t.Errorf("mask %d, %+v: %q, want %q", each.mask, each.final, got, want)
		}
	}
	if found, _, err := w.Deliveries(t.Context(), 7, Filter{}, 0, 10); err != nil || len(found) != 0 {
		t.Errorf("the endpoint's deliveries have %v, %v", found, err)
	}
	if found, err := w.Endpoints(t.Context(), 0, 10); err != nil || len(found) != 0 {
		t.Errorf("endpoints %v, %v", found, err)
	}
}

// What Kannel 1.4.5 sent for these escapes to fakesmsc, with this gateway's values; %p is the handset there too.
func TestCallbackEscapes(t *testing.T) {
	options := quickly()
	options.Facts = func(_ context.Context, company, message int64) (Facts, error) {
		if company != 7 {
			t.Errorf("facts of company %d", company)
		}
		return Facts{Carrier: "lumitel", ID: "ab 9", Receipt: "id:ab9 stat:DELIVRD err:000", Reason: "ESME_RINVDSTADR"}, nil
	}
	w := New(batchPool(t), options)
	run(t, w)
	c := newCalls(t, nil)
	const all = "/r?d=%d&p=%p&P=%P&t=%t&T=%T&A=%A&F=%F&I=%I&i=%i&a=%a&b=%b&q=%q&Q=%Q&x=%20%%&C=%C&c=%c&m=%m&M=%M&O=%O&o=%o&n=%n&B=%B&u=%u%f%D%k%z&e=100%"
	const begin, end = "&p=%2B25779123456&P=ACME&t=2026-03-01+08:02:11&T=1772352131", "&F=ab+9&I=01J&i=lumitel"
	for message, each := range map[int64]struct {
		final Event
		want  string
	}{
		1: {final(1, Sent, false), "GET /r?d=1" + begin + "&A=REPLY" + end +
			"&a=REPLY&b=REPLY&q=%2B25779123456&Q=ACME&x=%20%&C=UTF-8&c=0&m=-1&M=-1&O=00&o=INV%C3%A9d&n=7&B=x%25d&u=&e=100%25"},
		2: {final(2, Failed, true), "GET /r?d=16" + begin + "&A=NACK" + end +
			"&a=NACK&b=NACK&q=%2B25779123456&Q=ACME&x=%20%&C=UTF-8&c=0&m=-1&M=-1&O=00&o=INV%C3%A9d&n=7&B=x%25d&u=&e=100%25"},
	} {
		expect(t, w, message, 31, c.URL+all)
		enqueueAll(t, w, []Event{each.final})
		want := strings.NewReplacer("REPLY", "id%3Aab9+stat%3ADELIVRD+err%3A000", "NACK", "NACK%2FESME_RINVDSTADR").Replace(
			each.want)
		eventually(t, want, func() bool { return slices.Contains(c.all(), want) })
	}
	for _, r := range c.requests() {
		if r.body != "" || r.header.Get("X-Webhook-Signature") != "" {
			t.Errorf("a callback has %+v", r)
		}
	}
}

func TestCallbackRetries(t *testing.T) {
	w := New(batchPool(t), quickly())
	run(t, w)
	var fail sync.Map
	c := newCalls(t, func(rw http.ResponseWriter, r *http.Request) {
		if _, down := fail.Load(r.URL.Path); down {
			rw.WriteHeader(http.StatusBadGateway)
		}
	})
	fail.Store("/1", true)
	expect(t, w, 1, 1, c.URL+"/1")
	expect(t, w, 2, 1, c.URL+"/2")
	enqueueAll(t, w, []Event{final(1, Sent, false), final(2, Sent, false)})
	state := func(message int64) string {
		found, err := w.callbacks(t.Context(), 7, message)
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		return found[0].State
	}
	eventually(t, "given up", func() bool { return state(1) == StateFailed })
	eventually(t, "delivered", func() bool { return state(2) == StateDelivered })
	if n := len(slices.DeleteFunc(c.all(), func(s string) bool { return s != "GET /1" })); n != 6 {
		t.Errorf("%d calls, want 6", n)
	}
	var owners int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM webhook_endpoints WHERE given_up_at IS NOT NULL`).Scan(
		&owners); err != nil || owners != 0 {
		t.Errorf("%d owners would get a mail about an endpoint, %v", owners, err)
	}
}

// Reports come in order; one that failed is not called again after the final one.
func TestCallbackOrder(t *testing.T) {
	w := New(batchPool(t), quickly())
	c := newCalls(t, nil)
	for message := range int64(3) {
		expect(t, w, message+1, 27, c.URL+"/"+strconv.FormatInt(message, 10)+"/%d")
		submitted(t, w, message+1)
	}
	expect(t, w, 4, 8, c.URL+"/3/%d")
	submitted(t, w, 4)
	perform(t, w, `UPDATE webhook_undelivered SET tries = 1 WHERE id IN (1 * 8 + 4, 4 * 8 + 4)`)
	enqueueAll(t, w, []Event{final(1, Sent, false), final(2, Sent, false), final(3, Failed, false), final(4, Sent, false)})
	run(t, w)
	eventually(t, "all calls", func() bool { return len(c.all()) >= 6 })
	want := map[string]string{"0": "1", "1": "8 1", "2": "8 2", "3": "8"}
	for name, reports := range want {
		var got []string
		for _, uri := range c.all() {
			if report, of := strings.CutPrefix(uri, "GET /"+name+"/"); of {
				got = append(got, report)
			}
		}
		if strings.Join(got, " ") != reports {
			t.Errorf("message %s: %q, want %s", name, got, reports)
		}
	}
}

func TestEraseCallbacks(t *testing.T) {
	w := New(batchPool(t), quickly())
	expect(t, w, 1, 27, "http://127.0.0.1:1/%d?who=%p")
	submitted(t, w, 1)
	var pending []int64
	erase := func() {
		inTx(t, w, func(ctx context.Context, tx pgx.Tx) (err error) {
			pending, err = Erase(ctx, tx, []Subject{{CompanyID: 7, MessageID: 1}}, "erased")
			return err
		})
	}
	if erase(); !slices.Equal(pending, []int64{1}) {
		t.Errorf("pending %v", pending)
	}
	perform(t, w, `UPDATE webhook_undelivered SET due = 'infinity'`)
	if erase(); len(pending) != 0 {
		t.Errorf("pending %v", pending)
	}
	var number, callback string
	if err := w.pool.QueryRow(t.Context(), `SELECT phone_number, callback FROM webhook_deliveries`).Scan(
		&number, &callback); err != nil || number != "erased" || callback != "8" {
		t.Errorf("left %q %q, %v", number, callback, err)
	}
}
