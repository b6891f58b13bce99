package dashboard

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"intumwa/accounts"
	"intumwa/internal/throttle"
	"intumwa/sms"
)

const (
	downloadTime      = 10 * time.Minute // for a whole download
	downloadPatience  = 30 * time.Second // for a client that reads nothing
	downloadRate      = 8 << 10          // bytes a second that a client must read on average
	downloadPart      = 64 << 10         // bytes of a document in memory, and of a write
	downloadsOfAll    = 64               // concurrent downloads by customers
	downloadsOfOne    = 2                // of a company, or of an administrator
	downloadsOfOrigin = 8                // of a network address, which several companies may share
	downloadsOfAdmins = 8                // concurrent downloads by administrators: customers cannot take them
)

// downloadTurn takes a turn of the owner, a company or an administrator, and for a company one of the network address:
// anyone can create companies.
func (v *visit) downloadTurn(owner int64) (leave func(), err error) {
	d := v.d
	if v.administers {
		leave, err = d.adminDownloads.Enter(v.ctx(), owner)
	} else {
		leave, err = v.turnOfBoth(d.downloads, owner, d.downloaders, "download")
	}
	if err != nil {
		v.c.Header("Retry-After", "30")
		return nil, failures[http.StatusTooManyRequests]
	}
	return leave, nil
}

// turnOfBoth takes a turn of a company and one of the network address.
func (v *visit) turnOfBoth(companies *throttle.Turns, company int64, addresses *throttle.Turns, kind string) (leave func(), err error) {
	leaveAddress, err := addresses.Enter(v.ctx(), tryKey(kind, v.network()))
	if err != nil {
		return nil, err
	}
	leaveCompany, err := companies.Enter(v.ctx(), company)
	if err != nil {
		leaveAddress()
		return nil, err
	}
	return func() { leaveCompany(); leaveAddress() }, nil
}

// download writes a response of any length. It ends with an error if the client reads nothing for some time, or less
// than the rate on average, or takes too long altogether: a download holds a turn. The time between two writes does
// not count.
type download struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	left     time.Duration // of the patience
	end      time.Time
}

func (v *visit) newDownload() *download {
	d := &download{w: v.c.Writer, control: http.NewResponseController(v.c.Writer), patience: v.d.patience, left: v.d.patience}
	d.end, _ = v.ctx().Deadline()
	return d
}

// Write implements io.Writer.
func (d *download) Write(p []byte) (written int, err error) {
	for err == nil && written < len(p) {
		part := p[written:min(len(p), written+downloadPart)]
		var n int
		err = d.paced(len(part), func() (err error) {
			n, err = d.w.Write(part)
			return err
		})
		written += n
	}
	return written, err
}

// Flush sends what is buffered.
func (d *download) Flush() error { return d.paced(0, d.control.Flush) }

// paced calls write with a deadline for size bytes.
func (d *download) paced(size int, write func() error) error {
	start := time.Now()
	earned := time.Duration(size) * time.Second / downloadRate
	deadline := start.Add(d.left + earned)
	if !d.end.IsZero() && d.end.Before(deadline) {
		deadline = d.end
	}
	if err := d.control.SetWriteDeadline(deadline); err != nil {
		return err
	}
	err := write()
	d.left = min(d.patience, d.left+earned-time.Since(start))
	return err
}

// served is a response whose body is written as a download, for [http.ServeContent], which drops errors.
type served struct {
	http.ResponseWriter

	to  *download
	err error
}

// Write implements io.Writer.
func (s *served) Write(p []byte) (n int, err error) {
	n, err = s.to.Write(p)
	s.err = err
	return n, err
}

// watched keeps the error of reading a content that is served.
type watched struct {
	io.ReadSeeker

	err error
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (n int, err error) {
	if n, err = w.ReadSeeker.Read(p); err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// cutOff ends a download that failed in the middle: the browser reports an incomplete file.
func (v *visit) cutOff(what string, err error) {
	if v.c.Request.Context().Err() == nil {
		v.d.log.Warn("download cut off", "event", "download_cut_off", "file", what, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// document is GET /company/document.
func (d *Dashboard) document(v *visit, t tenant) error {
	return v.sendFacts(t.Company.ID, t.company())
}

// adminDocument is GET /admin/companies/:id/document.
func (d *Dashboard) adminDocument(v *visit) error {
	return v.sendFacts(v.session.User.ID, sms.CompanyID(v.id()))
}

// documentEndings are the file name endings of documents by media type.
var documentEndings = map[string]string{"application/pdf": "pdf", "image/png": "png", "image/jpeg": "jpg"}

// sendFacts responds with a company's document. owner has the turn.
func (v *visit) sendFacts(owner int64, company sms.CompanyID) error {
	return v.sendDocument(owner, int64(company), func() (accounts.Document, error) {
		facts, err := v.d.rooms.Companies.FactsOf(v.ctx(), company)
		return facts.Document, err
	}, func(d accounts.Document, from, size int) ([]byte, error) {
		return v.d.rooms.Companies.DocumentPart(v.ctx(), company, d, from, size)
	})
}

// sendDocument responds with a document as a download: somebody else controls its content. id is in the file's name. It
// reads each part in a turn at the database, so its memory does not depend on the size.
func (v *visit) sendDocument(owner, id int64, find func() (accounts.Document, error), read func(d accounts.Document, from, size int) ([]byte, error)) error {
	v.leave() // it may have to wait for a download to end
	leave, err := v.downloadTurn(owner)
	if err != nil {
		return err
	}
	defer leave()
	var document accounts.Document
	err = v.inTurn(func() (err error) {
		document, err = find()
		return err
	})
	switch {
	case err != nil:
		return err
	case document.Name == "" || document.Deleted:
		return accounts.ErrNotFound
	}
	h := v.c.Writer.Header()
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="intumwa-%d.%s"`, id, documentEndings[document.Type]))
	h.Set("Content-Type", document.Type)
	h.Set("Content-Length", fmt.Sprint(document.Size))
	v.c.Status(http.StatusOK)
	out := v.newDownload()
	for sent := 0; sent < document.Size && !v.headOnly(); {
		var part []byte
		if err = v.inTurn(func() (err error) {
			part, err = read(document, sent, downloadPart)
			return err
		}); err == nil {
			_, err = out.Write(part)
		}
		if err != nil {
			v.cutOff("document", err)
		}
		sent += len(part)
	}
	return nil
}
