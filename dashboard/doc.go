// Package dashboard serves the web pages for customers and administrators, rendered on the server, in French and
// English. Every page works without JavaScript. No file is loaded from other sites.
//
// # To add a page
//
//  1. Write the handler in the package of its readers, in a file named by its noun: func (ps *Pages) Senders(v
//     *web.Visit, t web.Tenant) error. It returns v.Render("senders", data). What it calls is a field of Pages, which
//     wire.go fills: pages reach nothing else.
//  2. Add its route to routes.go, by its audience: open, admin, or SignedIn and InCompany with the required right
//     ([accounts.Right]). Add its item to nav.go.
//  3. Write its template in pages/senders.html. It defines "title" and "main" from the parts in layout/parts.html.
//  4. Write its texts in texts/en/senders.txt and texts/fr/senders.txt.
//  5. Open it in walk_test.go with p.look("senders"), which checks it with axe-core, at the width of a phone, and
//     against the content security policy.
//
// # Handlers
//
//   - Errors: a handler returns them. A package's error for a missing row, and web.ErrNotFound, become 404. A failure
//     becomes its own page. Any other error is logged and becomes 503.
//   - Forms: v.Form() is the request's form. f.Required, f.Number and the like read its fields and set their errors. If
//     !f.OK(), the POST handler returns the GET handler, whose page shows the errors with the status 422. f.Deny sets
//     another status. A handler ends with v.Page(err, name, data) after reading, and with v.Done(err, path, flash)
//     after a change.
//   - Changes that the audit log has are methods of package operations. ps.By(v) performs them, and limits their number
//     per quarter of an hour.
//   - Lists: v.Parameters reads the filter, web.List reads a page of rows, and the parts "pages" and "listed" link to
//     the next page. To download a list, web.Export streams its rows; texts.Cell writes text from outside.
//   - The company's id comes from the tenant, never from a URL or a form. attack_test.go tries another company's ids.
//   - v.KeepSecret stores a secret that is shown once, in the transaction that creates it. The next page reads it with
//     v.TakeOnce. A page whose forms return to it stores it again.
//   - A decision of an administrator posts the version of what the page showed.
//   - signin's allow limits tries without a session, such as sign-ins; its mails contain no text from visitors
//     without a session.
//   - A request has 15 s and a form 64 KiB; web.Options.Uploads has the exceptions. A form that sends has a key, so
//     submitting it twice sends once.
//
// # Templates
//
//   - {{.T "key"}} is a text, {{$.Time .At}} a time, {{.Data}} the page's data. {{plain .Text}} shows text from
//     outside, {{wrap .Text}} in a cell of a table, where an endless word may break.
//   - An administration page begins with {{template "admin" .}} and has an item of adminNav in nav.go.
//   - A region with an id and data-live is fetched again and replaced while it has that attribute: every so many
//     milliseconds if it has a number, otherwise less and less often. Beside it, a link with data-plain reloads the
//     page without JavaScript.
//   - A form with data-measured="id" is posted with do=check while the user types, and the region with that id is
//     replaced.
//   - A form with data-place="id" is posted without leaving the page, and the region with that id is replaced.
//   - There is no inline script or style: the content security policy forbids them. JavaScript is in assets/app.js and
//     works by data attributes.
package dashboard
