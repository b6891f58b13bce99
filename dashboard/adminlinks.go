package dashboard

import (
	"errors"

	"intumwa/dashboard/web"
	"intumwa/dispatcher"
)

// showLinks is GET /admin/links: every link with its problems.
func (d *Dashboard) showLinks(v *web.Visit) error {
	now, err := d.board.now(v.Ctx())
	return v.Page(err, "adminlinks", now.view(v.Lang))
}

// pauseLink is POST /admin/links/:name/pause.
func (d *Dashboard) pauseLink(v *web.Visit) error { return d.setPaused(v, true, "flash.paused") }

// resumeLink is POST /admin/links/:name/resume.
func (d *Dashboard) resumeLink(v *web.Visit) error { return d.setPaused(v, false, "flash.resumed") }

func (d *Dashboard) setPaused(v *web.Visit, paused bool, flash string) error {
	_, err := d.by(v).SetPaused(v.Ctx(), v.C.Param("name"), paused)
	if errors.Is(err, dispatcher.ErrNoLink) {
		return web.ErrNotFound
	}
	return v.Done(err, "/admin/links", flash)
}
