package dashboard

import (
	"embed"
	"fmt"
	"html/template"
	"sync"

	"intumwa/dashboard/administration"
	contactpages "intumwa/dashboard/contacts"
	"intumwa/dashboard/develop"
	"intumwa/dashboard/following"
	"intumwa/dashboard/money"
	"intumwa/dashboard/sending"
	"intumwa/dashboard/settings"
	"intumwa/dashboard/signin"
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
	return template.New("pages").Funcs(web.Functions).Funcs(signin.Functions).Funcs(settings.Functions).Funcs(
		develop.Functions).Funcs(money.Functions).Funcs(sending.Functions).Funcs(following.Functions).
		Funcs(contactpages.Functions).Funcs(administration.Functions).Funcs(template.FuncMap{
		"asset": func(name string) (string, error) {
			p, ok := all.paths[name]
			if !ok {
				return "", fmt.Errorf("there is no asset %s", name)
			}
			return p, nil
		},
	}).ParseFS(pageFiles, "layout/*.html", "pages/*.html")
})
