package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"intumwa/accounts"
	"intumwa/internal/throttle"
)

const (
	downloadTime      = 10 * time.Minute // for a whole download
	downloadPatience  = 30 * time.Second // for a client that reads nothing
	downloadRate      = 8 << 10          // bytes a second that a client must read on average
	downloadPart      = 64 << 10         // bytes of a document in memory, and of a write
	DownloadsOfAll    = 64               // concurrent downloads by customers
	DownloadsOfOne    = 2                // of a company, or of an administrator
	DownloadsOfOrigin = 8                // of a network address, which several companies may share
	downloadsOfAdmins = 8                // concurrent downloads by administrators: customers cannot take them
)

// DownloadTurn takes a turn of the owner, a company or an administrator, and for a company one of the network address:
// anyone can create companies.
func (v *Visit) DownloadTurn(owner int64) (leave func(), err error) {
	s := v.site
	if v.administers {
		leave, err = s.adminDownloads.Enter(v.Ctx(), owner)
	} else {
		leave, err = turnOfBoth(v, s.Downloads, owner, s.downloaders, "download")
	}
	if err != nil {
		v.C.Header("Retry-After", "30")
		return nil, failures[http.StatusTooManyRequests]
	}
	return leave, nil
}

// turnOfBoth takes a turn of a company and one of the network address.
func turnOfBoth(v *Visit, companies *throttle.Turns, company int64, addresses *throttle.Turns, kind string) (
	leave func(), err error) {
	leaveAddress, err := addresses.Enter(v.Ctx(), TryKey(kind, v.Network()))
	if err != nil {
		return nil, err
	}
	leaveCompany, err := companies.Enter(v.Ctx(), company)
	if err != nil {
		leaveAddress()
		return nil, err
	}
	return func() { leaveCompany(); leaveAddress() }, nil
}

// Download writes a response of any length. It ends with an error if the client reads nothing for some time, or less
// than the rate on average, or takes too long altogether: a download holds a turn. The time between two writes does
// not count.
type Download struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	left     time.Duration // of the patience
	end      time.Time
}

// NewDownload returns the response as a download.
func NewDownload(v *Visit) *Download {
	d := &Download{w: v.C.Writer, control: http.NewResponseController(v.C.Writer), patience: v.site.Patience,
		left: v.site.Patience}
	d.end, _ = v.Ctx().Deadline()
	return d
}

// Write implements io.Writer.
func (d *Download) Write(p []byte) (written int, err error) {
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
func (d *Download) Flush() error { return d.paced(0, d.control.Flush) }

// paced calls write with a deadline for size bytes.
func (d *Download) paced(size int, write func() error) error {
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

// Served is a response whose body is written as a download, for [http.ServeContent], which drops errors.
type Served struct {
	http.ResponseWriter

	To  *Download
	Err error
}

// Write implements io.Writer.
func (s *Served) Write(p []byte) (n int, err error) {
	n, err = s.To.Write(p)
	s.Err = err
	return n, err
}

// Watched keeps the error of reading a content that is served.
type Watched struct {
	io.ReadSeeker

	Err error
}

// Read implements io.Reader.
func (w *Watched) Read(p []byte) (n int, err error) {
	if n, err = w.ReadSeeker.Read(p); err != nil && !errors.Is(err, io.EOF) {
		w.Err = err
	}
	return n, err
}

// CutOff ends a download that failed in the middle: the browser reports an incomplete file.
func (v *Visit) CutOff(what string, err error) {
	if v.C.Request.Context().Err() == nil {
		v.site.opts.Log.Warn("download cut off", "event", "download_cut_off", "file", what, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// documentEndings are the file name endings of documents by media type.
var documentEndings = map[string]string{"application/pdf": "pdf", "image/png": "png", "image/jpeg": "jpg"}

// SendDocument responds with a document as a download: somebody else controls its content. id is in the file's name. It
// reads each part in a turn at the database, so its memory does not depend on the size.
func (v *Visit) SendDocument(owner, id int64, find func() (accounts.Document, error),
	read func(d accounts.Document, from, size int) ([]byte, error)) error {
	v.Leave() // it may have to wait for a download to end
	leave, err := v.DownloadTurn(owner)
	if err != nil {
		return err
	}
	defer leave()
	var document accounts.Document
	err = v.InTurn(func() (err error) {
		document, err = find()
		return err
	})
	switch {
	case err != nil:
		return err
	case document.Name == "" || document.Deleted:
		return accounts.ErrNotFound
	}
	h := v.C.Writer.Header()
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="intumwa-%d.%s"`, id, documentEndings[document.Type]))
	h.Set("Content-Type", document.Type)
	h.Set("Content-Length", fmt.Sprint(document.Size))
	v.C.Status(http.StatusOK)
	out := NewDownload(v)
	for sent := 0; sent < document.Size && !v.HeadOnly(); {
		var part []byte
		if err = v.InTurn(func() (err error) {
			part, err = read(document, sent, downloadPart)
			return err
		}); err == nil {
			_, err = out.Write(part)
		}
		if err != nil {
			v.CutOff("document", err)
		}
		sent += len(part)
	}
	return nil
}
