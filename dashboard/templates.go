package dashboard

import (
	"embed"
	"fmt"
	"html/template"
	"sync"

	"intumwa/dashboard/web"
)

//go:embed layout pages
var pageFiles embed.FS

// pages returns the templates: those of the layout, and two per page, its title and its main part. The first visitor's
// request parses them: they take two megabytes.
var pages = sync.OnceValues(func() (*template.Template, error) {
	all, err := allAssets()
	if err != nil {
		return nil, err
	}
	return template.New("pages").Funcs(web.Functions).Funcs(template.FuncMap{
		"asset": func(name string) (string, error) {
			p, ok := all.paths[name]
			if !ok {
				return "", fmt.Errorf("there is no asset %s", name)
			}
			return p, nil
		},
		"became": became, "gone": gone, "kilobytes": kilobytes, "factOf": factOf, "monthRows": monthRows, "bif": bif, "priceBIF": priceBIF, "lastDay": lastDay, "percentOf": percentOf,
		"entryKind": entryKind, "localeOf": localeOf, "verificationOf": verificationOf, "verificationKind": verificationKind, "attemptOf": attemptOf, "lastOf": lastOf,
		"reference": reference, "lines": printable, "device": deviceName, "likeness": likeness,
	}).ParseFS(pageFiles, "layout/*.html", "pages/*.html")
})
