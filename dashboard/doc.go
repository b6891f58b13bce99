// Package dashboard serves the web pages for customers and administrators, rendered on the server, in French, English
// and Kirundi. Every page works without JavaScript; no file is loaded from other sites.
//
// # To add a page
//
//  1. A handler in a file named by its noun, e.g. sender.go: func (d *Dashboard) senders(v *visit, t tenant). It reads
//     and writes by the rooms, then calls v.render(status, "senders", data) or, after a change, v.redirect(path, flash).
//     Invalid input is marked by f.refuse(field, key) on f := v.form(), and the form is rendered again with 422.
//  2. Its route in routes.go, by who may open it: open (anybody), signedIn (a user), owner (a user with a company: the
//     handler gets a tenant, the only source of a company's id; never take one from a URL or a form), admin (an
//     administrator inside the administrators' scope). Its place in the side navigation is in nav.go.
//  3. Its template in pages/senders.html, which defines "title" and "main". Parts to build it from are in layout/parts.html:
//     field, choice, lines, badge, state, empty, notice, secret, copy, code, pages. {{.T "key"}} is a text, {{$.Time .At}} a time;
//     the page's data is .Data.
//  4. Its texts in words/en/senders.txt and words/fr/senders.txt. A test fails when a key is missing, or not used.
//  5. A step of the walk in walk_test.go, which visits it in Chromium in both languages with and without JavaScript,
//     holds it to axe-core and to the content security policy, and takes its picture (go test -artifacts -outputdir DIR
//     keeps them); and, in attack_test.go, another company's ids in its URLs and forms. That a route wants a session and
//     takes changes from our own pages only is tested for every route automatically.
//
// # Rules
//
//   - Changes of a company, a sender, a key or an endpoint are recorded by audit.Record in the same transaction, without
//     secrets.
//   - A secret that is shown once is stored by v.keepOnce (or v.keepOnceIn, in the transaction that creates it); the next
//     page reads it with v.takeOnce.
//   - Tries without a session, such as sign-ins, are limited by v.allowTry.
//   - Mails are sent by d.send and contain nothing that a visitor without a session wrote.
//   - A request has 15 s and a form 64 KiB; the exceptions are listed in security.go.
//   - A download is v.export, which streams rows. Text from outside is written through cell.
//   - A region with an id and data-live is fetched again and replaced while it has that attribute (data-live="all": in the
//     end the whole page is reloaded; a number: every so many milliseconds). Beside it is a link for reloading without
//     JavaScript, with data-plain.
//   - A form with data-measured="id" is posted with do=check while the user types, and the region with that id is replaced.
//   - A form that sends has a key, so that submitting it twice sends once.
//   - A page of the administration begins with {{template "admin" .}} and has a tab in nav.go. It makes changes by
//     d.change, which records the act in the same transaction.
//   - Text from outside is shown by {{plain .Text}}.
//   - There is no inline script or style: the content security policy forbids them. JavaScript is in assets/app.js, which
//     works by data attributes.
package dashboard
