package dashboard

import (
	"errors"

	"intumwa/dispatcher"
)

// showLinks is GET /admin/links: every link with its problems.
func (d *Dashboard) showLinks(v *visit) error {
	now, err := d.board.now(v.ctx())
	return v.page(err, "adminlinks", now.view(v.lang))
}

// pauseLink is POST /admin/links/:name/pause.
func (d *Dashboard) pauseLink(v *visit) error { return v.setPaused(true, "flash.paused") }

// resumeLink is POST /admin/links/:name/resume.
func (d *Dashboard) resumeLink(v *visit) error { return v.setPaused(false, "flash.resumed") }

func (v *visit) setPaused(paused bool, flash string) error {
	_, err := v.by().SetPaused(v.ctx(), v.c.Param("name"), paused)
	if errors.Is(err, dispatcher.ErrNoLink) {
		return errNotFound
	}
	return v.done(err, "/admin/links", flash)
}
