package administration

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts/companies"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/dashboard/web"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/sms"
)

const (
	numberTimeout = 5 * time.Second // for searching messages by number
)

type searchPage struct {
	Query     string
	Number    sms.Number // the number searched for; empty when the query is not a number
	Messages  []lookup.Record
	Back      time.Time // how far back messages were searched; zero: to the oldest
	Next      string    // address that searches further back
	Late      bool      // the search took too long: there is no result for messages
	Companies []companies.Applicant
	Senders   []senders.SenderRequest
	Users     []people.User // without a company
}

// only returns the path of a single result, otherwise "".
func (p *searchPage) only() string {
	if len(p.Users) > 0 || p.Number != "" || len(p.Companies)+len(p.Senders)+len(p.Messages) != 1 {
		return ""
	}
	switch {
	case len(p.Companies) == 1:
		return web.CompanyPath(p.Companies[0].Company.ID)
	case len(p.Senders) == 1:
		return web.CompanyPath(p.Senders[0].CompanyID)
	}
	return "/admin/messages/" + p.Messages[0].ULID.String()
}

// Search is GET /admin/search: it finds companies, users, senders, messages and batches by id, name or number, and
// messages by a carrier's id.
func (ps *Pages) Search(v *web.Visit) error {
	data := searchPage{Query: v.Parameters("q").Value("q")}
	if data.Query == "" {
		return v.Redirect("/admin/companies", "")
	}
	path, err := ps.find(v, &data)
	if err != nil {
		return err
	}
	if path = cmp.Or(path, data.only()); path != "" {
		return v.Redirect(path, "")
	}
	return v.Render("adminsearch", data)
}

// numbers accepts every mobile range.
var numbers = sms.NewPlan()

// find fills the page, or returns the result's path when the query identifies one.
func (ps *Pages) find(v *web.Visit, data *searchPage) (path string, err error) {
	store, ctx := lookup.New(ps.Deps.Pool), v.Ctx()
	if id, err := ulid.ParseStrict(strings.ToUpper(data.Query)); err == nil {
		switch m, err := store.OperatorsByULID(ctx, id); {
		case err == nil:
			return "/admin/messages/" + m.ULID.String(), nil
		case !errors.Is(err, messages.ErrNotFound):
			return "", err
		}
		switch batch, err := messages.QueuedOf(ctx, ps.Deps.Pool, id); {
		case err == nil:
			return web.CompanyPath(batch.Company), nil
		case !errors.Is(err, messages.ErrNotFound):
			return "", err
		}
		return "", nil
	}
	if number, ok := numbers.Parse(data.Query); ok {
		data.Number = number
		if err := ps.findNumber(v, data); err != nil {
			return "", err
		}
	}
	if id, err := strconv.ParseInt(data.Query, 10, 64); err == nil && data.Number == "" {
		switch m, err := store.OperatorsByID(ctx, id); {
		case err == nil:
			data.Messages = append(data.Messages, m)
		case !errors.Is(err, messages.ErrNotFound):
			return "", err
		}
	}
	named, err := store.OperatorsByCarrierID(ctx, data.Query)
	if err != nil {
		return "", err
	}
	for _, m := range named {
		if !slices.ContainsFunc(data.Messages, func(other lookup.Record) bool { return other.ID == m.ID }) {
			data.Messages = append(data.Messages, m)
		}
	}
	if data.Companies, err = ps.Deps.Companies.FindCompanies(ctx, data.Query, 0, web.RowsOnPage); err != nil {
		return "", err
	}
	if data.Senders, err = ps.Deps.Senders.FindSenders(ctx, data.Query, web.RowsOnPage); err != nil {
		return "", err
	}
	if strings.Contains(data.Query, "@") {
		found, err := ps.Deps.People.FindUsers(ctx, data.Query, web.RowsOnPage)
		if err != nil {
			return "", err
		}
		owners := map[int64]bool{}
		for _, c := range data.Companies {
			owners[c.Company.OwnerID] = true
		}
		for _, u := range found {
			if !owners[u.ID] {
				data.Users = append(data.Users, u)
			}
		}
	}
	return "", nil
}

// findNumber searches the latest messages, within limits of number and time.
func (ps *Pages) findNumber(v *web.Visit, data *searchPage) error {
	ctx, cancel := context.WithTimeout(v.Ctx(), numberTimeout)
	defer cancel()
	list, back, next, err := lookup.New(ps.Deps.Pool).OperatorsByNumber(ctx, data.Number, v.After("before"),
		web.RowsOnPage)
	if err != nil && ctx.Err() != nil && v.Ctx().Err() == nil {
		data.Late = true
		return nil
	}
	if err != nil {
		return err
	}
	data.Messages = list
	if next > 0 {
		data.Back = back
		data.Next = web.Address("/admin/search", "q", data.Query, "before", strconv.FormatInt(next, 10))
	}
	return nil
}
