package dashboard

import (
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher"
	"intumwa/internal/audit"
)

const (
	actPause  = "link.pause"
	actResume = "link.resume"
)

// showLinks is GET /admin/links: every link and its problems.
func (d *Dashboard) showLinks(v *visit, _ operator) {
	now, err := d.board.now(v.ctx())
	if err != nil {
		v.handleError("reading the links", err)
		return
	}
	v.render(http.StatusOK, "adminlinks", now.view(v.lang))
}

// pauseLink is POST /admin/links/:name/pause.
func (d *Dashboard) pauseLink(v *visit, o operator) {
	d.setPaused(v, o, true, actPause, "flash.paused")
}

// resumeLink is POST /admin/links/:name/resume.
func (d *Dashboard) resumeLink(v *visit, o operator) {
	d.setPaused(v, o, false, actResume, "flash.resumed")
}

func (d *Dashboard) setPaused(v *visit, o operator, paused bool, act, flash string) {
	link := v.c.Param("name")
	err := d.changeBusy(v.ctx(), o, func(tx pgx.Tx) (audit.Entry, error) {
		before, err := dispatcher.IsPaused(v.ctx(), tx, link)
		if err != nil {
			return audit.Entry{}, err
		}
		_, err = dispatcher.SetPaused(v.ctx(), tx, link, paused)
		return audit.Entry{Act: act, Subject: "link " + link, Before: map[string]any{"paused": before}, After: map[string]any{"paused": paused}}, err
	})
	switch {
	case errors.Is(err, dispatcher.ErrNoLink):
		v.renderError(http.StatusNotFound)
	case err != nil:
		v.handleError("pausing a link", err)
	default:
		d.board.forget(v.ctx())
		v.redirect("/admin/links", flash)
	}
}
