package dashboard

import (
	"errors"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher"
	"intumwa/internal/audit"
)

const (
	actPause  = "link.pause"
	actResume = "link.resume"
)

// showLinks is GET /admin/links: every link with its problems.
func (d *Dashboard) showLinks(v *visit) error {
	now, err := d.board.now(v.ctx())
	return v.page(err, "adminlinks", now.view(v.lang))
}

// pauseLink is POST /admin/links/:name/pause.
func (d *Dashboard) pauseLink(v *visit) error { return v.setPaused(true, actPause, "flash.paused") }

// resumeLink is POST /admin/links/:name/resume.
func (d *Dashboard) resumeLink(v *visit) error { return v.setPaused(false, actResume, "flash.resumed") }

func (v *visit) setPaused(paused bool, act, flash string) error {
	link := v.c.Param("name")
	err := v.changeBusy(func(tx pgx.Tx) (audit.Entry, error) {
		before, err := dispatcher.IsPaused(v.ctx(), tx, link)
		if err != nil {
			return audit.Entry{}, err
		}
		_, err = dispatcher.SetPaused(v.ctx(), tx, link, paused)
		return audit.Entry{Act: act, Subject: "link " + link, Before: map[string]any{"paused": before}, After: map[string]any{"paused": paused}}, err
	})
	if errors.Is(err, dispatcher.ErrNoLink) {
		return errNotFound
	}
	return v.done(err, "/admin/links", flash)
}
