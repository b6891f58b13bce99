// Package dashboard is the web face: pages for customers and administrators, rendered on the server, in French, English
// and Kirundi. Every page works without JavaScript; nothing comes from elsewhere.
//
// # To add a page
//
//  1. A handler in a file named by its noun, e.g. sender.go: func (d *Dashboard) senders(v *visit, t tenant). It reads
//     and writes by the rooms below, then v.render(status, "senders", data) or, after a change, v.redirect(path, flash).
//     What a person filled in wrongly is v.form() with f.refuse(field, key), rendered again with 422.
//  2. Its route in routes.go, by who may open it: open (anybody), signedIn (a user), owner (a user with a company: the
//     handler gets a tenant, the only source of a company's id; never take one from a URL or a form), admin (an
//     administrator inside the administrators' scope). Its place in the side navigation is in nav.go.
//  3. Its template in pages/senders.html, which defines "title" and "main". Parts to build it from are in layout/parts.html:
//     field, choice, lines, badge, state, empty, notice, secret, copy, code, pages. {{.T "key"}} is a text, {{$.Time .At}} a time;
//     what is data is below .Data.
//  4. Its texts in words/en/senders.txt and words/fr/senders.txt. A test fails when a key is missing, or not used.
//  5. A step of the walk in walk_test.go, which visits it in Chromium in both languages with and without JavaScript,
//     holds it to axe-core and to the content security policy, and takes its picture (go test -artifacts -outputdir DIR
//     keeps them); and, in attack_test.go, another company's ids in its URLs and forms. That a route wants a session and
//     takes changes from our own pages only, tests see of every route by themselves.
//
// What a page changes of a company, a sender, a key or an endpoint is recorded by acts.Record in the transaction of the
// change, with no secret in it.
//
// A secret that is shown once is kept by v.keepOnce (or, with the change that makes it, v.keepOnceIn) until the next page takes it with v.takeOnce. What a stranger may try
// is counted by v.mayTry. Mails go out by d.send, and say nothing that a stranger wrote. A handler that a person waits
// for has 15 s; a form has 64 KiB. Routes that take more are named in security.go. A file to download is v.export, which
// streams it row by row; what a stranger may have written goes into it through cell.
//
// A region with an id and data-live is fetched again, and replaced, while it has that attribute (data-live="all": at the
// end the whole page is loaded again); beside it stands a link that looks again, with data-plain, which JavaScript hides. A form with data-measured="id" is posted with do=check while
// one writes, and the region of that id is taken from the answer. A form that sends holds a key, so that twice is once.
// A page of the administration begins with {{template "admin" .}} and has a tab in nav.go. What it changes it changes by
// d.change, which records the act in the same transaction. What others wrote is shown by {{plain .Text}}. A page that
// stays open is a stream (stream.go): counted, and ended with the session and the server.
//
// No inline script or style: the content security policy refuses them. JavaScript is assets/app.js, which finds its work
// by data attributes.
package dashboard
