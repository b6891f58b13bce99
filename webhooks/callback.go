package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Reports of a message that a callback may ask for: the bits of its mask, with the values of Kannel's dlr-mask.
const (
	ReportDelivered = 1
	ReportFailed    = 2  // and with a mask without ReportRefused, that no carrier accepted it
	ReportSubmitted = 8  // a carrier accepted it
	ReportRefused   = 16 // it failed, and no carrier had accepted it

	reports = ReportDelivered | ReportFailed | ReportSubmitted | ReportRefused
)

// The events of callbacks, which no endpoint gets.
const (
	dlrSubmitted = "dlr.submitted"
	dlrFinal     = "dlr.final"
)

// callbacksOf is the number under which a company's callbacks are kept: beside its endpoint, so that neither delays the
// other. Every callback has its own URL.
func callbacksOf(company int64) int64 { return -company }

// companyOf returns the company of an endpoint, or of callbacks.
func companyOf(number int64) int64 { return max(number, -number) }

// Callback asks for reports of one message, each by a GET of a URL.
type Callback struct {
	URL  string // with Kannel's escapes: see [Callback.For]
	Mask int

	Account, Service, Billing string // what the sender says about the message, for %o, %n and %B
}

// Expected is the callback of a message.
type Expected struct {
	CompanyID, MessageID int64
	Number               sms.Number
	Callback
}

// expand replaces the escapes of a URL that value knows.
func expand(text string, value func(escape byte) (replacement string, known bool)) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+1 < len(text) {
			if with, known := value(text[i+1]); known {
				b.WriteString(with)
				i++
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// BadCallback is the reason of a refusal of a callback's escapes.
const BadCallback = "callback_escape"

// CheckCallback returns an sms.Refusal when a URL cannot be a callback: those of an endpoint's URL, or an escape in the
// host.
func (w *Webhooks) CheckCallback(text string) error {
	if _, rest, ok := strings.Cut(text, "://"); ok && strings.Contains(rest[:strings.IndexAny(rest+"/", "/?#")], "%") {
		return newRefusal(BadCallback, "The webhook URL's host must not contain escapes.")
	}
	return w.guard.checkURL(expand(literal(text), func(escape byte) (string, bool) {
		if with, known := same[escape]; known {
			return with, true
		}
		return standIn, isLetter(escape)
	}))
}

// literal encodes the percent signs of a callback's URL that begin neither an escape nor an encoded octet: they stand
// for themselves. Octets begin with a digit (%20): %C3 is the escape %C and a 3.
func literal(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		b.WriteByte(text[i])
		if text[i] != '%' {
			continue
		}
		switch rest := text[i+1:]; {
		case rest != "" && (isLetter(rest[0]) || rest[0] == '%'):
			b.WriteByte(rest[0])
			i++
		case len(rest) > 1 && isDigit(rest[0]) && (isDigit(rest[1]) || strings.IndexByte("abcdefABCDEF", rest[1]) >= 0):
		default:
			b.WriteString("%25")
		}
	}
	return b.String()
}

// standIn stands for an escape in the check of a URL: about as long as the longest of those that are stored replaced.
var standIn = strings.Repeat("x", 32)

// same are the escapes that stand for the same in every report: c, C, m and M are what Kannel fills in for a receipt.
var same = map[byte]string{'%': "%", 'c': "0", 'C': "UTF-8", 'm': "-1", 'M': "-1", 'O': "00"}

// reported are the escapes that depend on the report.
const reported = "dtTAabFi"

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// For returns the callback of a message. Only the escapes are left that depend on the report: d the report, t and T the
// time, A, a and b the carrier's reply, F its id of the message, i the carrier. Before, p and q stand for the
// recipient, P and Q for the sender, I for our id, o, n and B for what the Callback says. Other letters stand for
// nothing, as in Kannel's reports.
func (c Callback) For(number sms.Number, sender, id string) Callback {
	c.URL = expand(literal(c.URL), func(escape byte) (string, bool) {
		with, known := same[escape]
		switch escape {
		case 'p', 'q':
			with = url.QueryEscape(string(number))
		case 'P', 'Q':
			with = url.QueryEscape(sender)
		case 'I':
			with = id
		case 'o':
			with = url.QueryEscape(c.Account)
		case 'n':
			with = url.QueryEscape(c.Service)
		case 'B':
			with = url.QueryEscape(c.Billing)
		default:
			if strings.IndexByte(reported, escape) >= 0 {
				return "%" + string(escape), true
			}
			return with, known || isLetter(escape)
		}
		// A stored URL is expanded again for its reports: what was filled in must not have an escape.
		return strings.ReplaceAll(with, "%", "%%"), true
	})
	return c
}

// Expect records callbacks in the transaction that records their messages.
func Expect(ctx context.Context, tx pgx.Tx, all []Expected) error {
	n := len(all)
	companies, ids, numbers, masks, urls := make([]int64, n), make([]int64, n), make([]string, n), make([]int16, n),
		make([]string, n)
	for i, e := range all {
		companies[i], ids[i], numbers[i], masks[i], urls[i] = e.CompanyID, e.MessageID, string(e.Number),
			int16(e.Mask&reports), e.URL
	}
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO webhook_callbacks (company_id, message_id, phone_number, mask, url)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::smallint[], $5::text[])`, companies, ids, numbers,
		masks, urls)
	b.Queue(`INSERT INTO webhook_endpoints (company_id, url, secret)
		SELECT DISTINCT -c, '', '' FROM unnest($1::bigint[]) c
		WHERE NOT EXISTS (SELECT FROM webhook_endpoints e WHERE e.company_id = -c) ORDER BY 1 ON CONFLICT DO NOTHING`,
		companies)
	return postgres.Pipeline(ctx, tx, fmt.Sprintf("recording %d callbacks", n), b)
}

// Submitted enqueues the callbacks of messages that carriers have accepted whole, in the transaction that records it.
// Every callback is enqueued once.
func (w *Webhooks) Submitted(ctx context.Context, tx pgx.Tx, messages []int64) error {
	if len(messages) == 0 {
		return nil
	}
	b := &pgx.Batch{}
	b.Queue(enqueueSubmitted, messages).Exec(w.kickAfter(tx))
	return postgres.Pipeline(ctx, tx, "enqueueing callbacks of submitted messages", b)
}

// kickAfter returns the callback of a statement that enqueues: it wakes Run after the commit if there is something to
// call.
func (w *Webhooks) kickAfter(tx pgx.Tx) func(pgconn.CommandTag) error {
	return func(done pgconn.CommandTag) error {
		if done.RowsAffected() > 0 {
			postgres.AfterCommit(tx, w.Kick)
		}
		return nil
	}
}

const enqueueSubmitted = `
	WITH accepted AS (
		UPDATE webhook_callbacks c SET mask = c.mask - 8
		FROM (SELECT message_id FROM webhook_callbacks WHERE message_id = ANY($1) AND mask & 8 <> 0 ORDER BY message_id
		FOR UPDATE) a
		WHERE c.message_id = a.message_id RETURNING c.*
	)
	INSERT INTO webhook_undelivered (company_id, id, at, due, phone_number, callback)
	SELECT -company_id, message_id * 8 + 4, now(), now(), phone_number, '8 ' || url FROM accepted`

// enqueueFinal ends the callbacks of final messages. It comes a moment after a report about the submit that has not
// been called yet. One that has failed is overtaken: its repetition would come after the final one.
const enqueueFinal = `
	WITH final AS (
		DELETE FROM webhook_callbacks c
		USING (SELECT unnest($1::bigint[]) AS message_id, unnest($2::timestamptz[]) AS at, unnest($3::smallint[]) AS report) f
		WHERE c.message_id = f.message_id
		RETURNING c.company_id, c.message_id, c.phone_number, c.url, c.mask, f.at,
			CASE WHEN f.report = 16 AND c.mask & 16 = 0 THEN 2 ELSE f.report END AS report
	), pending AS (
		SELECT w.company_id, w.id, w.tries FROM final f JOIN webhook_undelivered w ON w.company_id = -f.company_id
			AND w.id = f.message_id * 8 + 4
		WHERE f.mask & f.report <> 0 AND w.due <> 'infinity' ORDER BY w.company_id, w.id FOR UPDATE OF w
	), overtaken AS (
		DELETE FROM webhook_undelivered u USING pending w WHERE u.company_id = w.company_id AND u.id = w.id AND w.tries > 0
	)
	INSERT INTO webhook_undelivered (company_id, id, at, due, phone_number, callback)
	SELECT -company_id, message_id * 8 + 5, at, now() + coalesce((SELECT interval '1 second' FROM pending w
		WHERE w.id = message_id * 8 + 4 AND w.tries = 0), '0'),
		phone_number, report || ' ' || url
	FROM final WHERE mask & report <> 0`

// queueFinal adds the callbacks of events to a pipeline.
func (w *Webhooks) queueFinal(b *pgx.Batch, tx pgx.Tx, events []Event) {
	var ids []int64
	var at []time.Time
	var final []int16
	for i := range events {
		report := ReportFailed
		switch e := &events[i]; {
		case !e.Callback:
			continue
		case e.Name == Sent:
			report = ReportDelivered
		case e.Name != Failed:
			continue
		case e.Unsubmitted:
			report = ReportRefused
		}
		ids, at, final = append(ids, events[i].MessageID), append(at, events[i].At), append(final, int16(report))
	}
	if ids != nil {
		b.Queue(enqueueFinal, ids, at, final).Exec(w.kickAfter(tx))
	}
}

// Facts are what a carrier said about a message.
type Facts struct {
	Carrier string
	ID      string // the carrier's; "": none
	Receipt string // the receipt, in the form of SMPP 3.4, appendix B
	Reason  string // why it failed
}

// callbackTarget returns the request of a callback. An error means that its facts could not be read.
func (c *core) callbackTarget(ctx context.Context, e *storedEvent) (*target, error) {
	report, address, _ := strings.Cut(e.callback, " ")
	var facts Facts
	asks := false
	expand(address, func(escape byte) (string, bool) {
		asks = asks || strings.IndexByte("AabFi", escape) >= 0
		return "", true
	})
	if asks && c.opts.Facts != nil {
		var err error
		if facts, err = c.opts.Facts(ctx, companyOf(e.company), messageOf(e.id)); err != nil {
			return nil, err
		}
	}
	reply := facts.Receipt
	switch value, _ := strconv.Atoi(report); value {
	case ReportSubmitted:
		reply = "ACK/"
	case ReportRefused:
		reply = "NACK/" + facts.Reason
	}
	at := e.at.UTC()
	address = expand(address, func(escape byte) (with string, known bool) {
		switch escape {
		case 'd':
			with = report
		case 't':
			with = at.Format("2006-01-02+15:04:05")
		case 'T':
			with = strconv.FormatInt(at.Unix(), 10)
		case 'A', 'a', 'b':
			with = url.QueryEscape(reply)
		case 'F':
			with = url.QueryEscape(facts.ID)
		case 'i':
			with = url.QueryEscape(facts.Carrier)
		case '%':
			with = "%"
		default:
			return "", false
		}
		return with, true
	})
	u, err := url.Parse(address)
	if err != nil { // CheckCallback was less strict when it was accepted
		return nil, errors.New("the stored URL does not parse") // no URL in the log: it may hold a secret
	}
	return &target{host: u.Hostname(), place: placeOf(u), head: "GET " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host +
		"\r\nUser-Agent: Intumwa-Webhooks/1\r\nAccept: */*\r\n\r\n"}, nil
}

// placeOf is where the connection for a URL goes.
func placeOf(u *url.URL) (p place) {
	port := "80"
	if u.Scheme == "https" {
		p.name, port = u.Hostname(), "443"
	}
	if given := u.Port(); given != "" {
		port = given
	}
	p.address = net.JoinHostPort(u.Hostname(), port)
	return p
}

// OfMessage returns all deliveries about a company's message: to its endpoint, and its callbacks.
func (w *Webhooks) OfMessage(ctx context.Context, company sms.CompanyID, message int64) ([]Delivery, error) {
	events, _, err := w.Deliveries(ctx, company, Filter{MessageID: message}, 0, idSpan)
	if err != nil || !company.Valid() {
		return events, err
	}
	own, err := w.callbacks(ctx, company, message)
	return append(events, own...), err
}

func (w *Webhooks) callbacks(ctx context.Context, company sms.CompanyID, message int64) ([]Delivery, error) {
	first, err := deliveryID(message, Sent)
	if err != nil {
		return nil, nil // there is no such message
	}
	page, _, err := w.deliveryPage(ctx, sms.CompanyID(callbacksOf(int64(company))), Filter{}, first+idSpan, first, idSpan,
		0)
	return page, err
}
