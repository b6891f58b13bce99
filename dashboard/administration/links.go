package administration

import (
	"errors"

	"intumwa/dashboard/web"
	"intumwa/dispatcher"
)

// ShowLinks is GET /admin/links: every link with its problems.
func (ps *Pages) ShowLinks(v *web.Visit) error {
	now, err := ps.Board.now(v.Ctx())
	return v.Page(err, "adminlinks", now.view(v.Lang))
}

// PauseLink is POST /admin/links/:name/pause.
func (ps *Pages) PauseLink(v *web.Visit) error { return ps.setPaused(v, true, "flash.paused") }

// ResumeLink is POST /admin/links/:name/resume.
func (ps *Pages) ResumeLink(v *web.Visit) error { return ps.setPaused(v, false, "flash.resumed") }

func (ps *Pages) setPaused(v *web.Visit, paused bool, flash string) error {
	_, err := ps.By(v).SetPaused(v.Ctx(), v.C.Param("name"), paused)
	if errors.Is(err, dispatcher.ErrNoLink) {
		return web.ErrNotFound
	}
	return v.Done(err, "/admin/links", flash)
}
