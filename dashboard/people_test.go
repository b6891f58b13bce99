package dashboard

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/intake"
)

// person is a new signed-in user of a company in a role.
func (w *world) person(company accounts.Company, role accounts.Role) (*client, people.User) {
	w.t.Helper()
	u := people.User{Email: string(role) + "." + strconv.FormatInt(company.ID, 10) + "@example.com", Company: company.ID,
		Role: role}
	if err := w.pool.QueryRow(w.t.Context(), `insert into users (email, name, password_hash, language, company_id, role)
		values ($1, 'Jean', 'x', 'en', $2, $3) returning id`, u.Email, company.ID, role).Scan(&u.ID); err != nil {
		w.t.Fatal(err)
	}
	c := newClient(w)
	w.session(c, u)
	return c, u
}

// session opens a user's session in a client's browser.
func (w *world) session(c *client, u people.User) {
	w.t.Helper()
	token, _, err := w.sessions.OpenSession(w.t.Context(), u, people.Browser{})
	if err != nil {
		w.t.Fatal(err)
	}
	c.plant(token)
}

// roleRoutes maps the routes of a company's pages to the roles that may use them; all others are in openTo or
// the administration.
var roleRoutes = map[string]string{
	"owner sender developer finance " +
		"reader": `GET / GET /charts GET /account POST /account/password POST /account/sessions/:id/end POST /account/sign-out
		GET /account/two-step POST /account/two-step POST /account/two-step/codes POST /account/two-step/off`,
	"owner sender developer " +
		"reader": `GET /messages GET /messages/:id GET /messages.csv GET /messages/exports POST /messages/exports GET ` +
		`/messages/exports/:export/messages.csv GET /quality GET /quality.csv GET /campaigns GET /batches/:id GET ` +
		`/received GET /received.csv
		GET /opt-outs GET /opt-outs.csv GET /senders GET /verifications GET /contacts GET /contacts/:id GET /contacts/groups
		GET /conversations GET /conversations/with`,
	"owner sender": `GET /messages/new POST /messages/new POST /campaigns GET /campaigns/drafts/:draft GET ` +
		`/campaigns/drafts/:draft/lines.csv POST /campaigns/drafts/:draft/send
		POST /campaigns/drafts/:draft/without POST /campaigns/drafts/:draft/drop GET /batches/:id/left-out.csv POST ` +
		`/batches/:id/cancel POST /batches/:id/continue POST /opt-outs POST /opt-outs/remove
		POST /verifications POST /verifications/:id/check
		POST /contacts/export.csv POST /contacts/export.xlsx POST /contacts/ticked GET /contacts/new POST /contacts/new
		POST /contacts/:id POST /contacts/:id/delete POST /contacts/groups POST /contacts/groups/:id
		POST /contacts/groups/:id/delete GET /contacts/import POST /contacts/import GET /contacts/imports/:id
		GET /contacts/imports/:id/lines.csv POST /contacts/imports/:id/confirm POST /contacts/imports/:id/drop
		POST /conversations/read POST /conversations/with`,
	"owner developer": `GET /keys POST /keys POST /keys/run POST /keys/:id/revoke GET /smpp POST /smpp POST ` +
		`/smpp/:id/revoke POST /smpp/:id/unbind POST /webhook POST /webhook/active POST /webhook/events POST ` +
		`/webhook/pulled POST /webhook/rotate
		POST /webhook/rotate/end POST /webhook/test GET /deliveries POST /deliveries/recovery GET /deliveries/of/:id POST ` +
		`/deliveries/of/:id/resend
		GET /test-number POST /test-number POST /test-number/verify GET /first POST /first GET /first/:id`,
	"owner finance": `GET /orders POST /orders GET /orders/:id GET /orders/:id/proforma GET /orders/:id/slip
		POST /orders/:id/reference POST /orders/:id/slip POST /orders/:id/cancel GET /invoices/:name ` +
		`GET /statement GET /statement/month GET /statement/month.csv GET /statement/print GET ` +
		`/statement.csv POST /statement/threshold`,
	"owner": `GET /company POST /company/facts GET /company/document POST /company/document GET /company/new POST ` +
		`/company/new GET /people POST /people POST /people/:id/role POST /people/:id/remove
		POST /invitations/:id/withdraw POST /senders POST /verifications/text`,
}

const roleRefused = "Your role does not permit this"

// TestRoles: every route has a decision for every role.
func TestRoles(t *testing.T) {
	w := newWorld(t, nil)
	_, _, company := w.customer("aline", "ISOKO", 0)
	allowed := map[string]string{}
	for roles, routes := range roleRoutes {
		words := strings.Fields(routes)
		for i := 0; i < len(words); i += 2 {
			allowed[words[i]+" "+words[i+1]] = roles
		}
	}
	routes := w.d.site.Routes()
	decided := 0
	for _, role := range accounts.Roles {
		c, u := w.person(company, role)
		for _, r := range routes {
			if openTo[r.Method+" "+r.Path] || strings.HasPrefix(r.Path, "/admin") {
				continue
			}
			roles, known := allowed[r.Method+" "+r.Path]
			if !known {
				t.Errorf("%s %s: no decision", r.Method, r.Path)
				continue
			}
			decided++
			w.session(c, u) // the page may have ended the session
			path := regexp.MustCompile(`:\w+`).ReplaceAllString(r.Path, "999999")
			form := url.Values{"none": {"x"}}
			if r.Method == http.MethodGet {
				form = nil
			}
			a := c.do(r.Method, path, form)
			if want := slices.Contains(strings.Fields(roles), string(role)); want == strings.Contains(a.body, roleRefused) {
				t.Errorf("%s: %s %s: %d, want allowed %v", role, r.Method, path, a.StatusCode, want)
			}
		}
	}
	if decided != len(allowed)*len(accounts.Roles) {
		t.Errorf("%d decisions for %d routes", decided, len(allowed))
	}
}

var offered = regexp.MustCompile(`href="(/[^"]*)"|method="post" action="(/[^"]*)"`)

// TestPagesMatchRoles: no link or form leads to a page that the role may not open.
func TestPagesMatchRoles(t *testing.T) {
	w := newWorld(t, nil)
	_, u, company := w.customer("aline", "ISOKO", 100)
	p, err := w.holders.PrincipalOf(t.Context(), u.ID)
	if err != nil {
		t.Fatal(err)
	}
	batch := intake.Batch{Sender: "ISOKO", Recipients: []intake.Recipient{{Number: "+25761234567", Message: "the words"},
		{Number: "+25761234568", Message: "the words"}}}
	if _, err := w.d.deps.Intake.SendBatch(t.Context(), p, batch); err != nil {
		t.Fatal(err)
	}
	w.exec(`insert into opt_outs (company_id, phone_number, sender, source) values ($1, '+25761234569', '', 'api')`,
		company.ID)
	menus := map[accounts.Role]string{
		accounts.RoleOwner: "/ /messages /campaigns /contacts /conversations " +
			"/received /opt-outs /verifications /charts /quality /keys /smpp " +
			"/deliveries /test-number /company /people /senders /orders /statement /account",
		accounts.RoleSender: "/ /messages /campaigns /contacts /conversations " +
			"/received /opt-outs /verifications /charts /quality /senders /account",
		accounts.RoleDeveloper: "/ /messages /campaigns /contacts /conversations " +
			"/received /opt-outs /verifications /charts /quality /keys /smpp " +
			"/deliveries /test-number /senders /account",
		accounts.RoleFinance: "/ /charts /orders /statement /account",
		accounts.RoleReader: "/ /messages /campaigns /contacts /conversations " +
			"/received /opt-outs /verifications /charts /quality /senders /account",
	}
	for _, role := range accounts.Roles {
		c, person := w.person(company, role)
		home := c.get("/")
		menu := home.body[strings.Index(home.body, `<div class="wide">`):strings.Index(home.body, `<div class="column">`)]
		var items []string
		for _, m := range regexp.MustCompile(`<a href="(/[^"]*)"`).FindAllStringSubmatch(menu, -1) {
			items = append(items, m[1])
		}
		if got := strings.Join(items, " "); got != menus[role] {
			t.Errorf("%s: the menu has %s", role, got)
		}
		seen, words := map[string]bool{}, false
		var look func(path string)
		look = func(path string) {
			if path, _, _ = strings.Cut(path, "?"); seen[path] || strings.HasPrefix(path, "/assets/") {
				return
			}
			seen[path] = true
			a := c.get(path)
			if strings.Contains(a.body, roleRefused) {
				t.Errorf("%s may not open %s, which is offered", role, path)
			}
			words = words || strings.Contains(a.body, "the words")
			for _, m := range offered.FindAllStringSubmatch(a.body, -1) {
				switch to := html.UnescapeString(m[1]); {
				case to != "":
					look(to)
				case m[2] == "/sign-out" || m[2] == "/account/sign-out" || strings.HasSuffix(m[2], "/remove") || seen["POST "+m[2]]:
				default:
					seen["POST "+m[2]] = true
					if a := c.post(m[2], "none", "x"); strings.Contains(a.body, roleRefused) {
						t.Errorf("%s may not post to %s, which %s offers", role, m[2], path)
					}
					w.session(c, person)
				}
			}
		}
		look("/")
		if words != (role != accounts.RoleFinance) {
			t.Errorf("%s sees texts of messages: %v", role, words)
		}
	}
}

var invitationLink = regexp.MustCompile(`/invitation/[\w-]+`)

// invited invites an address and returns the path of the mailed link.
func (c *client) invited(email string, role accounts.Role, mails int) string {
	c.t.Helper()
	a := c.post("/people", "name", "Jean", "email", email, "role", string(role))
	c.wants(a, http.StatusSeeOther)
	return invitationLink.FindString(c.w.mail(email, mails).Text)
}

func (w *world) actsOfCompanies(act string) (n int) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), `select count(*) from audit_log where act = $1 and company_id is not null`,
		act).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func TestInvitePeople(t *testing.T) {
	w := newWorld(t, nil)
	aline, owner, company := w.owner()
	other, _, _ := w.customer("bob", "BOBCO", 0)
	for field, form := range map[string][]string{
		"name":  {"name", " ", "email", "x@example.com", "role", "reader"},
		"role":  {"name", "X", "email", "x@example.com", "role", "admin"},
		"email": {"name", "X", "email", "x", "role", "reader"},
	} {
		aline.wants(aline.post("/people", form...), http.StatusUnprocessableEntity, `id="f-`+field+`-wrong"`)
	}
	aline.wants(aline.post("/people", "name", "X", "email", owner.Email, "role", "reader"), http.StatusUnprocessableEntity,
		"already belongs to your company")

	// An address without an account.
	link := aline.invited("jean@example.com", accounts.RoleSender, 0)
	if text := w.mail("jean@example.com", 0).Text; !strings.Contains(text, owner.Email) ||
		strings.Contains(text, company.Name) {
		t.Errorf("the mail names an unchecked company, or not its sender:\n%s", text)
	}
	aline.wants(aline.get("/people"), http.StatusOK, "jean@example.com", "Invited")
	jean := newClient(w)
	jean.wants(jean.get(link), http.StatusOK, company.Name, "Your role: Sending", `name="password"`)
	jean.wants(jean.post(link, "password", "short"), http.StatusUnprocessableEntity)
	jean.wants(jean.post(link, "password", testPassword), http.StatusSeeOther)
	jean.wants(jean.get("/messages/new"), http.StatusOK)
	jean.wants(jean.get("/people"), http.StatusForbidden, roleRefused)
	jean.wants(jean.get(link), http.StatusNotFound)
	newClient(w).wants(newClient(w).post(link, "password", testPassword), http.StatusNotFound) // used twice

	// An address whose account belongs to another company.
	link = aline.invited("bob@example.com", accounts.RoleOwner, 0)
	aline.wants(aline.get(link), http.StatusForbidden, "for another address")
	other.wants(other.get(link), http.StatusConflict, "already belongs to a company")
	other.wants(other.post(link), http.StatusConflict, "already belongs to a company")

	// An address whose account has no company: it signs in first.
	pia := w.user("pia@example.com", false)
	link = aline.invited(pia.Email, accounts.RoleDeveloper, 0)
	c := newClient(w)
	if a := c.get(link); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/sign-in?next="+
		url.QueryEscape(link) {
		t.Errorf("without a session: %d %s", a.StatusCode, a.Header.Get("Location"))
	}
	c.wants(c.post(link, "password", testPassword), http.StatusSeeOther)
	c.signIn(pia.Email)
	c.wants(c.get(link), http.StatusOK, company.Name, "Your role: Development")
	c.wants(c.post(link), http.StatusSeeOther)
	c.wants(c.get("/keys"), http.StatusOK)
	c.wants(c.post(link), http.StatusNotFound)

	// A withdrawn invitation.
	link = aline.invited("eric@example.com", accounts.RoleReader, 0)
	open, err := w.people.InvitationsOf(t.Context(), company.ID)
	if err != nil || len(open) != 2 {
		t.Fatal(open, err)
	}
	id := strconv.FormatInt(open[1].ID, 10)
	other.wants(other.post("/invitations/"+id+"/withdraw"), http.StatusNotFound)
	aline.wants(aline.post("/invitations/"+id+"/withdraw"), http.StatusSeeOther)
	newClient(w).wants(newClient(w).get(link), http.StatusNotFound)
	for act, want := range map[string]int{"user.invite": 4, "user.join": 2, "user.uninvite": 1} {
		if got := w.actsOfCompanies(act); got != want {
			t.Errorf("%s is recorded %d times", act, got)
		}
	}
}

// TestChangePeople: a changed role and a removal apply at the next request.
func TestChangePeople(t *testing.T) {
	w := newWorld(t, nil)
	aline, owner, company := w.owner()
	other, stranger, _ := w.customer("bob", "BOBCO", 0)
	jean, u := w.person(company, accounts.RoleDeveloper)
	jean.wants(jean.post("/keys", "name", "Till"), http.StatusSeeOther)
	key := keyText.FindString(jean.get("/keys").body)
	if _, err := w.holders.Authenticate(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	aline.wants(aline.get("/keys"), http.StatusOK, "Till", u.Email)

	of := func(id int64, act string) string { return "/people/" + strconv.FormatInt(id, 10) + "/" + act }
	aline.wants(aline.post(of(owner.ID, "role"), "role", "reader"), http.StatusUnprocessableEntity, "needs an owner")
	aline.wants(aline.post(of(owner.ID, "remove")), http.StatusUnprocessableEntity, "needs an owner")
	aline.wants(aline.post(of(u.ID, "role"), "role", "admin"), http.StatusUnprocessableEntity)
	aline.wants(aline.post(of(stranger.ID, "remove")), http.StatusNotFound)
	other.wants(other.post(of(u.ID, "remove")), http.StatusNotFound)
	jean.wants(jean.post(of(owner.ID, "remove")), http.StatusForbidden, roleRefused)

	aline.wants(aline.post(of(u.ID, "role"), "role", "owner"), http.StatusSeeOther)
	jean.wants(jean.get("/people"), http.StatusOK, owner.Email)
	aline.wants(aline.post(of(u.ID, "role"), "role", "owner"), http.StatusSeeOther) // unchanged: nothing is recorded
	aline.wants(aline.post(of(u.ID, "remove")), http.StatusSeeOther)
	if a := jean.get("/"); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/sign-in" {
		t.Errorf("the removed person's session: %d", a.StatusCode)
	}
	w.holders.ForgetUser(strconv.FormatInt(u.ID, 10)) // the notice, for which no listener runs here
	if _, err := w.holders.Authenticate(t.Context(), key); err == nil {
		t.Error("the removed person's key works")
	}
	if changed, removed := w.actsOfCompanies("user.role"), w.actsOfCompanies("user.remove"); changed != 1 || removed != 1 {
		t.Errorf("%d changes and %d removals are recorded", changed, removed)
	}
	// An owner who leaves the company has none.
	_, heir := w.person(company, accounts.RoleOwner)
	aline.wants(aline.post(of(owner.ID, "role"), "role", "finance"), http.StatusSeeOther)
	aline.wants(aline.get("/people"), http.StatusForbidden, roleRefused)
	if c, err := w.companies.CompanyByID(t.Context(), company.ID); err != nil || c.OwnerID != heir.ID {
		t.Errorf("mails go to %d, %v", c.OwnerID, err)
	}
}
