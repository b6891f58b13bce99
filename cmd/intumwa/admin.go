package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/accounts/testnumbers"
	"intumwa/billing/orders"
	"intumwa/campaigns"
	"intumwa/configs"
	"intumwa/inbound/handsets"
	"intumwa/internal/audit"
	"intumwa/internal/postgres"
	"intumwa/operations"
	"intumwa/sms"
)

// adminCmd has the operators' commands. Their JSON keys are an interface: add keys, never rename
// them.
type adminCmd struct {
	JSON bool `name:"json" help:"Print one JSON object or array."`

	User       adminUserCmd       `cmd:"" help:"Users."`
	Token      adminTokenCmd      `cmd:"" help:"API tokens."`
	SMPP       adminSMPPCmd       `cmd:"" name:"smpp" help:"Customers that bind by SMPP: their keys and their binds."`
	Company    adminCompanyCmd    `cmd:"" help:"Companies."`
	Credits    adminCreditsCmd    `cmd:"" help:"SMS credits."`
	Price      adminPriceCmd      `cmd:"" help:"What a credit costs companies."`
	Order      adminOrderCmd      `cmd:"" help:"Orders of credits and their payments."`
	Invoice    adminInvoiceCmd    `cmd:"" help:"Invoices, receipts and credit notes of sold credits."`
	Tariff     adminTariffCmd     `cmd:"" help:"What carriers take for a segment."`
	Report     adminReportCmd     `cmd:"" help:"Reports of a period."`
	Sender     adminSenderCmd     `cmd:"" help:"Sender names."`
	Webhook    adminWebhookCmd    `cmd:"" help:"Webhook endpoints."`
	TestNumber adminTestNumberCmd `cmd:"" name:"test-number" help:"Test numbers."`
	TestSend   adminTestSendCmd   `cmd:"" name:"test-send" help:"Send an SMS to your telephone, and wait for its receipt."`
	Message    adminMessageCmd    `cmd:"" help:"Messages."`
	Batch      adminBatchCmd      `cmd:"" help:"Bulk and template sends."`
	Status     adminStatusCmd     `cmd:"" help:"Show what works and what waits; fails if something needs attention."`
	Audit      adminAuditCmd      `cmd:"" help:"Prove that ledger, balances and messages agree."`
	Top        adminTopCmd        `cmd:"" help:"List the companies that send most."`
	Links      adminLinksCmd      `cmd:"" help:"List the links to the carriers."`
	Link       adminLinkCmd       `cmd:"" help:"Pause, resume or trace a link."`
	Carrier    adminCarrierCmd    `cmd:"" help:"Try a carrier, see unknown words of its receipts, or retire it."`
	Routes     adminRoutesCmd     `cmd:"" help:"List which numbers go to which carrier."`
	Inbound    adminInboundCmd    `cmd:"" help:"Messages from handsets: list them, and route them to companies."`
	Contacts   adminContactsCmd   `cmd:"" help:"Contacts of companies."`
	Number     adminNumberCmd     `cmd:"" help:"Show or erase all data about one phone number."`
	Verify     adminVerifyCmd     `cmd:"" name:"verification" help:"Decide about companies' own texts of verifications."`
	Unusual    adminUnusualCmd    `cmd:"" help:"List companies that send unusually much."`
	Log        adminLogCmd        `cmd:"" help:"List changes by operators and customers, by page or command."`
	Restored   adminRestoredCmd   `cmd:"" help:"After a restore: no id comes twice, and pending messages are held."`
	Unanswered adminUnansweredCmd `cmd:"" help:"List messages that a carrier may have, and decide."`
	Unmatched  adminUnmatchedCmd  `cmd:"" help:"List receipts that no message was found for."`
}

// operator is the state of one admin command.
type operator struct {
	*program
	config *configs.Config
	pool   *pgxpool.Pool
	asJSON bool  // --json
	away   error // set when commits wait for an absent standby: the pool then only reads
}

// adminConnections is small: commands must work when connections are scarce.
const adminConnections = 4

func (o *operator) open(ctx context.Context, options postgres.Options) (*pgxpool.Pool, error) {
	options.Name, options.ReadOnly = postgres.SessionName("admin"), o.away != nil
	pool, err := postgres.Open(ctx, string(o.config.Database.URL), options)
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}
	return pool, nil
}

// adminWork is a command on the database. do may return a result together with an error; the result is
// printed.
type adminWork interface {
	do(ctx context.Context, o *operator) (any, error)
}

// run opens the database, does the work and prints its result. The time is the database's ([postgres.Now]).
//
// No command hangs on a synchronous standby that is away. If commits wait at the start, the command can read and
// nothing else; run cancels a wait that begins later.
func (a *adminCmd) run(ctx context.Context, p *program, work adminWork) error {
	config, err := p.config()
	if err != nil {
		return err
	}
	o := &operator{program: p, config: config, asJSON: a.JSON}
	if o.pool, err = o.open(ctx, postgres.Options{MaxConns: adminConnections}); err != nil {
		return err
	}
	defer func() {
		if o.pool != nil {
			o.pool.Close()
		}
	}()
	if err := postgres.Current(ctx, o.pool); err != nil {
		return fmt.Errorf("looking at the database's schema: %w", err)
	}
	if err := postgres.ReadClock(ctx, o.pool); err != nil {
		return err
	}
	if alone, err := postgres.Unsafe(ctx, o.pool); err != nil {
		return err
	} else if alone == "" {
		if err := postgres.TryCommit(ctx, o.pool, commitPatience); errors.Is(err, postgres.ErrStandbyAway) {
			o.away = err
			o.pool.Close()
			if o.pool, err = o.open(ctx, postgres.Options{MaxConns: adminConnections}); err != nil {
				return err
			}
		}
	}
	attendance := postgres.Attend(ctx, o.pool, commitPatience)
	result, err := work.do(ctx, o)
	switch late := attendance.End(); {
	case o.away != nil && postgres.SQLState(err) == readOnlyTransaction:
		return fmt.Errorf("%w. Nothing was changed", o.away)
	case o.away != nil:
		_, _ = fmt.Fprintf(p.stderr, "intumwa: warning: %v. Until then commands can read, and change nothing\n", o.away)
	case late != nil:
		err = errors.Join(err, fmt.Errorf("%w. What this command has changed is on this server alone: do not repeat it",
			late))
	}
	if result == nil {
		return err
	}
	return errors.Join(err, a.print(p.stdout, result))
}

// done returns what an act prints: nothing if it failed.
func done(result any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return result, nil
}

func (a *adminCmd) print(w io.Writer, result any) error {
	if a.JSON {
		return printJSON(w, result)
	}
	return printHuman(w, result)
}

// readOnlyTransaction is the SQLSTATE of a write in a read-only session.
const readOnlyTransaction = "25006"

func (o *operator) people() *people.Store       { return people.New(o.pool) }
func (o *operator) companies() *companies.Store { return companies.New(o.pool, nil) }
func (o *operator) senders() *senders.Store     { return senders.New(o.pool, o.config.TestSender, nil) }
func (o *operator) keys() *keys.Store {
	return keys.New(o.pool, []byte(o.config.Accounts.OTPKey), nil)
}
func (o *operator) orders() *orders.Store { return orders.New(o.pool, o.config.Sales()) }
func (o *operator) testNumbers() *testnumbers.Store {
	return testnumbers.New(o.pool, testnumbers.Options{Key: []byte(o.config.Accounts.OTPKey)})
}

// by returns the operator, who performs acts. many is a pool for statements over many messages, nil if the act has
// none.
func (o *operator) by(many *pgxpool.Pool) operations.Actor {
	return operations.By(audit.Operator(), nil, operations.Deps{Pool: o.pool, Many: many, People: o.people(),
		Companies: o.companies(), Keys: o.keys(), Senders: o.senders(), TestNumbers: o.testNumbers(),
		Webhooks: o.openWebhooks(), Handsets: handsets.New(o.pool), Orders: o.orders(),
		EraseCampaigns: func(ctx context.Context, number sms.Number) (int64, error) {
			return campaigns.Erase(ctx, o.pool, number)
		}})
}

// object is an ordered list of keys and values. The keys are an interface.
type object []pair

type pair struct {
	key   string
	value any
}

// optional leaves its key out of JSON when the value is zero or empty.
type optional struct{ value any }

func (o optional) empty() bool {
	v := reflect.ValueOf(o.value)
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

// MarshalJSON keeps the order of the keys.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	separator := "{"
	for _, p := range o {
		if maybe, is := p.value.(optional); is {
			if maybe.empty() {
				continue
			}
			p.value = maybe.value
		}
		fmt.Fprintf(&b, "%s%q:", separator, p.key)
		if err := encoder.Encode(p.value); err != nil {
			return nil, err
		}
		separator = ","
	}
	if separator == "{" {
		b.WriteString(separator)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// deep is an object with nested lists and objects. The human form is indented JSON.
type deep struct{ object }

func (d deep) human(w io.Writer) error {
	encoder := json.NewEncoder(plainJSON{w})
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(d.object)
}

func printJSON(w io.Writer, result any) error {
	encoder := json.NewEncoder(plainJSON{w})
	encoder.SetEscapeHTML(false)
	return encoder.Encode(result)
}

// printHuman prints an object or a struct as lines of key and value, and a list of them as a table. The headings are
// the JSON keys. See cell for what a value may contain.
func printHuman(w io.Writer, result any) error {
	if own, is := result.(interface{ human(io.Writer) error }); is {
		return own.human(w)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0) // Flush returns write errors
	_, one := result.(object)
	if list := reflect.ValueOf(result); list.Kind() == reflect.Slice && !one {
		for i := range list.Len() {
			if own, is := list.Index(i).Interface().(interface{ human(io.Writer) error }); is {
				if err := own.human(w); err != nil {
					return err
				}
				continue
			}
			var keys, cells []string
			for _, p := range objectOf(list.Index(i).Interface()) {
				keys, cells = append(keys, p.key), append(cells, cell(p.value))
			}
			if i == 0 {
				_, _ = fmt.Fprintln(t, strings.Join(keys, "\t"))
			}
			_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
		}
		return t.Flush()
	}
	for _, p := range objectOf(result) {
		if maybe, is := p.value.(optional); !is || !maybe.empty() {
			_, _ = fmt.Fprintf(t, "%s\t%s\n", p.key, cell(p.value))
		}
	}
	return t.Flush()
}

// objectOf returns an object itself, and converts a struct with JSON tags.
func objectOf(s any) (o object) {
	if o, is := s.(object); is {
		return o
	}
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			o = append(o, objectOf(v.Field(i).Interface())...)
			continue
		}
		key, more, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if key == "-" {
			continue
		}
		value := v.Field(i).Interface()
		if more == "omitempty" {
			value = optional{value}
		}
		o = append(o, pair{key, value})
	}
	return o
}

func cell(value any) string {
	if maybe, is := value.(optional); is {
		value = maybe.value
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "-"
		}
		value = v.Elem().Interface()
	}
	switch v := value.(type) {
	case nil:
		return "-"
	case time.Time:
		return v.Format(time.RFC3339)
	case map[string]string:
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, key+"="+v[key])
		}
		return sms.Printable(strings.Join(pairs, ", "))
	}
	return sms.Printable(fmt.Sprint(value))
}

// listPage is the number of rows that one query of a list reads.
const listPage = 500

// instant is a flag: RFC 3339, a date (its first moment in UTC), or a duration back from
// now. Empty is the zero time.
type instant struct {
	at   time.Time
	back *time.Duration // back from now; nil: at is set
}

// moment resolves the instant on the database's clock.
func (i instant) moment() time.Time {
	if i.back != nil {
		return postgres.Now().Add(-*i.back)
	}
	return i.at
}

// UnmarshalText implements kong's mapping.
func (i *instant) UnmarshalText(text []byte) error {
	s := string(text)
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			*i = instant{at: t}
			return nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		*i = instant{back: &d}
		return nil
	}
	return fmt.Errorf("%q is no time: 2026-03-01T10:00:00+02:00, 2026-03-01, or 24h for a day ago", s)
}

// recorded is a state from the audit log: JSON or empty.
type recorded json.RawMessage

// MarshalJSON writes the state unchanged.
func (r recorded) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	return r, nil
}

// String formats the state for a table.
func (r recorded) String() string {
	if r == nil {
		return "-"
	}
	return string(r)
}

type adminLogCmd struct {
	Since   instant `help:"Only acts of then or later." placeholder:"T"`
	Company int64   `help:"Only acts that concern this company." placeholder:"ID"`
	Limit   int     `help:"How many at most." default:"1000"`
}

// do lists the audit log, newest first.
func (c *adminLogCmd) do(ctx context.Context, o *operator) (any, error) {
	filter := audit.Filter{Company: sms.CompanyID(c.Company), Since: c.Since.moment()}
	return collect(0, c.Limit, func(before int64, limit int) ([]audit.Act, int64, error) {
		return audit.List(ctx, o.pool, filter, before, limit)
	}, func(a audit.Act) any {
		return object{{"id", a.ID}, {"at", a.At}, {"actor", a.Actor}, {"act", a.Act}, {"subject", a.Subject},
			{"company_id", orNull(int64(a.Company))}, {"before", recorded(a.Before)}, {"after", recorded(a.After)}}
	})
}

// orNull returns nil (null in JSON) for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// listFlags has the flags of every list: page size and cursor.
type listFlags struct {
	After int64 `help:"Only those with larger ids: the next part." placeholder:"ID"`
	Limit int   `help:"How many at most." default:"1000"`
}

// collect reads a list in pages. page returns rows after a cursor and the next cursor, 0 at the end. view returns nil
// to leave a row out.
func collect[T any](cursor int64, most int, page func(cursor int64, limit int) ([]T, int64, error), view func(T) any) (
	any, error) {
	if most < 1 {
		return nil, errors.New("--limit must be at least 1")
	}
	list := []any{} // [] in JSON, not null
	for {
		rows, next, err := page(cursor, min(listPage, most-len(list)))
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if shown := view(row); shown != nil {
				list = append(list, shown)
			}
		}
		if next == 0 || len(list) >= most {
			return list[:min(len(list), most)], nil
		}
		cursor = next
	}
}

// asIs is a view of rows that are printed as they are.
func asIs[T any](row T) any { return row }

// collectByID is collect for rows in ascending order of id. The first key of each object is the id.
func collectByID[T any](ctx context.Context, s listFlags, page func(ctx context.Context, after int64, limit int) (
	[]T, error), view func(T) any) (any, error) {
	return collect(s.After, s.Limit, func(after int64, limit int) (rows []T, next int64, err error) {
		rows, err = page(ctx, after, limit)
		if len(rows) == limit {
			next, _ = objectOf(view(rows[limit-1]))[0].value.(int64)
		}
		return rows, next, err
	}, view)
}

// views converts rows. An empty list is [] in JSON, not null.
func views[T, V any](rows []T, view func(T) V) []V {
	list := []V{}
	for _, row := range rows {
		list = append(list, view(row))
	}
	return list
}
