package contacts

import (
	"context"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

const contactColumns = `c.id, c.company_id, c.phone_number, c.name, c.language, c.fields, c.consent_source,
	c.consented_at, c.created_at, c.updated_at, (
		SELECT coalesce(jsonb_agg(jsonb_build_object('id', g.id, 'name', g.name) ORDER BY g.id), '[]')
		FROM contact_members m JOIN contact_groups g ON g.id = m.group_id WHERE m.contact_id = c.id
	)`

func scanContact(row pgx.CollectableRow) (c Contact, err error) {
	var at *time.Time
	err = row.Scan(&c.ID, &c.Company, &c.Number, &c.Name, &c.Language, &c.Fields, &c.Consent.Source, &at, &c.CreatedAt,
		&c.UpdatedAt, &c.Groups)
	if at != nil {
		c.Consent.At = *at
	}
	return c, err
}

// Get returns a company's contact; [ErrNotFound] if it has none with the id.
func (s *Store) Get(ctx context.Context, company, id int64) (Contact, error) {
	return s.one(ctx, `c.company_id = $1 AND c.id = $2`, company, id)
}

// ByNumber returns a company's contact by its number; [ErrNotFound] if it has none.
func (s *Store) ByNumber(ctx context.Context, company int64, number sms.Number) (Contact, error) {
	return s.one(ctx, `c.company_id = $1 AND c.phone_number = $2`, company, string(number))
}

func (s *Store) one(ctx context.Context, condition string, args ...any) (Contact, error) {
	found, err := postgres.All(ctx, s.db, "reading a contact", scanContact,
		`SELECT `+contactColumns+` FROM contacts c WHERE `+condition, args...)
	return first(found, err, ErrNotFound)
}

// OfNumber returns the contacts of all companies with a number.
func (s *Store) OfNumber(ctx context.Context, number sms.Number) ([]Contact, error) {
	return postgres.All(ctx, s.db, "reading the contacts of a number", scanContact, `SELECT `+contactColumns+`
		FROM contacts c WHERE c.company_id IN (SELECT company_id FROM contact_books) AND c.phone_number = $1
		ORDER BY c.company_id`, string(number))
}

// Names returns the names of a company's contacts among numbers; those without a name are left out.
func (s *Store) Names(ctx context.Context, company int64, numbers []sms.Number) (map[sms.Number]string, error) {
	names := map[sms.Number]string{}
	if len(numbers) == 0 {
		return names, nil
	}
	list := make([]string, len(numbers))
	for i, n := range numbers {
		list[i] = string(n)
	}
	var number sms.Number
	var name string
	err := postgres.Each(ctx, s.db, "reading the names of contacts", []any{&number, &name}, func() error {
		names[number] = name
		return nil
	}, `SELECT phone_number, name FROM contacts WHERE company_id = $1 AND phone_number = ANY($2) AND name <> ''`,
		company, list)
	return names, err
}

// Filter selects contacts of a company; a zero field selects all.
type Filter struct {
	Number string // the beginning of a number in E.164 form
	Name   string // the beginning of a name, whose case and accents do not count
	Group  int64
}

// Searchable reports whether contacts can be searched by a name: it has more than blanks, accents and characters that
// are invisible or cannot be written.
func Searchable(name string) bool { return fold(postgres.Text(name)) != "" }

// Search returns the filter for what a person types into a search field: the beginning of a number or of a name.
func Search(typed string) (f Filter) {
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" .-()+\u00a0", r) {
			return -1
		}
		return r
	}, typed)
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return Filter{Name: typed}
	}
	digits = strings.TrimPrefix(digits, "00")
	if !strings.HasPrefix("257", digits) {
		digits = "257" + strings.TrimPrefix(digits, "257")
	}
	return Filter{Number: "+" + digits}
}

// scanned is how many contacts a page of a group's members by name or number reads at most.
const scanned = 1000

// List returns up to limit contacts of a company: by name or number if the filter has one, else the latest first. after
// is the previous page's next, "" for the first page; next is "" after the last. A page of a group's members by name or
// number may have fewer, even none, and still have a next one.
func (s *Store) List(ctx context.Context, company int64, f Filter, after string, limit int) (page []Contact,
	next string, err error) {
	key, id, ok := parseCursor(after)
	if !ok {
		return nil, "", ErrNotFound
	}
	var query string
	args := []any{company, limit + 1}
	reads := limit + 1
	const member = `EXISTS (SELECT FROM contact_members m WHERE m.group_id = $3 AND m.contact_id = c.id)`
	matches := `true`
	if f.Group != 0 && (f.Number != "" || f.Name != "") {
		matches, reads, args[1] = member, scanned, scanned
	}
	args = append(args, f.Group)
	switch prefix := fold(postgres.Text(f.Name)); {
	case f.Number != "":
		start := f.Number
		if after != "" {
			start = key + " " // behind it
		}
		args = append(args, start, f.Number+"~", prefix)
		query = `SELECT c.id, c.phone_number, ` + matches + ` AND starts_with(c.name_key, $6)
			FROM contacts c WHERE c.company_id = $1 AND c.phone_number >= $4 AND c.phone_number < $5
			AND $3::bigint IS NOT NULL ORDER BY c.phone_number LIMIT $2`
	case prefix != "":
		if after == "" {
			key = prefix
		}
		// One lower bound: with two, PostgreSQL may begin at the first name of all.
		args = append(args, key, id, prefix+"\U0010ffff")
		query = `SELECT c.id, c.name_key, ` + matches + ` FROM contacts c WHERE c.company_id = $1
			AND (c.name_key, c.id) > ($4, $5::bigint) AND c.name_key < $6 AND $3::bigint IS NOT NULL
			ORDER BY c.name_key, c.id LIMIT $2`
	case f.Group != 0:
		args = append(args, before(id))
		query = `WITH m AS MATERIALIZED (SELECT contact_id FROM contact_members WHERE group_id = $3 AND contact_id < $4
				ORDER BY contact_id DESC LIMIT $2)
			SELECT c.id, '', c.company_id = $1 FROM m JOIN contacts c ON c.id = m.contact_id ORDER BY c.id DESC`
	default:
		args = []any{company, limit + 1, before(id)}
		query = `SELECT c.id, '', true FROM contacts c WHERE c.company_id = $1 AND c.id < $3 ORDER BY c.id DESC LIMIT $2`
	}
	var ids []int64
	var at int64
	var is bool
	var last string
	read := 0
	if err := postgres.Each(ctx, s.db, "listing contacts", []any{&at, &key, &is}, func() error {
		read++
		switch {
		case len(ids) < limit && is:
			ids = append(ids, at)
			fallthrough
		case len(ids) < limit:
			last = cursor(key, at)
		default:
			next = last
		}
		return nil
	}, query, args...); err != nil {
		return nil, "", err
	}
	if read == reads {
		next = last
	}
	page, err = s.byID(ctx, company, ids)
	return page, next, err
}

// byID returns contacts in the order of their ids; those that are gone are left out.
func (s *Store) byID(ctx context.Context, company int64, ids []int64) ([]Contact, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := postgres.All(ctx, s.db, "reading contacts", scanContact,
		`SELECT `+contactColumns+` FROM contacts c WHERE c.company_id = $1 AND c.id = ANY($2)`, company, ids)
	slices.SortFunc(list, func(a, b Contact) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return list, err
}

func before(id int64) int64 {
	if id == 0 {
		return math.MaxInt64
	}
	return id
}

// cursor is where a page ends: the id, and what its order goes by before the id.
func cursor(key string, id int64) string {
	text := strconv.FormatInt(id, 10)
	if key != "" {
		text += "." + base64.RawURLEncoding.EncodeToString([]byte(key))
	}
	return text
}

func parseCursor(text string) (key string, id int64, ok bool) {
	if text == "" {
		return "", 0, true
	}
	number, encoded, _ := strings.Cut(text, ".")
	id, err := strconv.ParseInt(number, 10, 64)
	raw, bad := base64.RawURLEncoding.DecodeString(encoded)
	return string(raw), id, err == nil && id > 0 && bad == nil && string(raw) == postgres.Text(string(raw))
}
