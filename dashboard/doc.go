// Package dashboard serves the web pages for customers and administrators, rendered on the server, in French and English.
// Every page works without JavaScript; no file is loaded from other sites.
//
// # To add a page
//
//  1. Write the handler in a file named by its noun: func (d *Dashboard) senders(v *visit, t tenant) error. It returns v.render("senders", data).
//  2. Add its route to routes.go, by who may open it: open, admin, or signedIn and inCompany with the right that it needs ([accounts.Right]). Add its place in the navigation to nav.go.
//  3. Write its template in pages/senders.html, which defines "title" and "main", of the parts in layout/parts.html.
//  4. Write its texts in words/en/senders.txt and words/fr/senders.txt.
//  5. Open it in walk_test.go with p.look("senders"), which holds it to axe-core, to the width of a phone and to the content security policy.
//
// # What a handler does
//
//   - Errors: a handler returns them. An error of a room that there is no such row, and errNotFound, become 404; a failure
//     becomes its own page; any other error is logged and becomes 503.
//   - Forms: v.form() is the form of the request. f.required, f.number and the like read its fields and set their errors; if
//     !f.ok(), the handler for POST returns the one for GET, whose page shows the errors with the status 422. f.deny sets
//     another status. It ends with v.page(err, name, data) after reading, and with v.done(err, path, flash) after a change.
//   - Changes that the audit log records are made by v.change: the change and its act, without secrets, in one transaction,
//     and only so many in a quarter of an hour.
//   - Lists: v.parameters reads the filter, list reads a page of rows, and the parts "pages" and "listed" link to the next
//     one. A download of a list is export, which streams rows; text from outside is written through cell.
//   - The company's id comes from the tenant, never from a URL or a form. attack_test.go tries another company's ids.
//   - A secret that is shown once is stored by v.keepOnceIn, in the transaction that creates it; the next page reads it with
//     v.takeOnce. A page whose forms return to it stores it again.
//   - Tries without a session, such as sign-ins, are limited by f.allow. Mails are sent by d.send and contain nothing that a
//     visitor without a session wrote.
//   - A request has 15 s and a form 64 KiB; the exceptions are listed in security.go. A form that sends has a key, so that
//     submitting it twice sends once.
//
// # What a template does
//
//   - {{.T "key"}} is a text, {{$.Time .At}} a time, {{.Data}} the page's data. Text from outside is shown by {{plain .Text}}.
//   - A page of the administration begins with {{template "admin" .}} and has a tab in nav.go.
//   - A region with an id and data-live is fetched again and replaced while it has that attribute (a number: every so
//     many milliseconds). Beside it is a link for reloading without JavaScript, with data-plain.
//   - A form with data-measured="id" is posted with do=check while the user types, and the region with that id is replaced.
//   - A form with data-place="id" is posted without leaving the page, and the region with that id is replaced.
//   - There is no inline script or style: the content security policy forbids them. JavaScript is in assets/app.js, which
//     works by data attributes.
package dashboard
