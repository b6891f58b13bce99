package web

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"

	"intumwa/internal/throttle"
)

// A file that is uploaded stays in memory, once, and never on disk. The client decides how long that lasts, so the
// limits on concurrent uploads bound the memory: TestMemoryOfUploads.
const (
	uploadsOfAll       = 64 // concurrent uploads, of at most 1 MiB but for these:
	documentsOfAll     = 12 // documents of 5 MiB
	largeUploads       = 4  // larger lists, one per company
	UploadsOfCompany   = 2
	UploadsOfAddress   = 8 // from one network address, which several companies may share
	DocumentsOfAddress = 2
	heavyAtOnce        = 2 // workbooks that are unpacked, and documents that are stored: each needs a multiple of its size

	firstRoom = 1 << 20 // bytes for a file, until more of it came
	mostParts = 100     // of a form
)

// UploadTurn takes a turn of the owner, a company or an administrator, and one of the network address for a form with a
// file.
func (v *Visit) UploadTurn(owner int64) (leave func(), err error) {
	return turnOfUpload(v, owner, v.site.uploaders)
}

func turnOfUpload(v *Visit, owner int64, addresses *throttle.Turns) (leave func(), err error) {
	if leave, err = turnOfBoth(v, v.site.uploads, owner, addresses, "upload"); err != nil {
		err = v.busy(http.StatusTooManyRequests)
	}
	return leave, err
}

// LargeTurn takes one of few turns for a large file, one per owner.
func (v *Visit) LargeTurn(owner int64) (leave func(), err error) {
	if leave, err = v.site.large.Enter(v.Ctx(), owner); err != nil {
		err = v.busy(http.StatusTooManyRequests)
	}
	return leave, err
}

// Upload reads a form with a file. It returns the file, at most one byte longer than most, and its name; nil without a
// file.
func (v *Visit) Upload(most int64) (file []byte, name string, err error) {
	r := v.C.Request
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, "", unreadable(err)
	}
	r.PostForm = url.Values{}
	left := int64(MaxForm)
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return file, name, nil
		case err != nil:
			return nil, "", unreadable(err)
		case n == mostParts:
			return nil, "", errForbidden
		case part.FileName() == "":
			value, err := io.ReadAll(io.LimitReader(part, left+1))
			if err != nil {
				return nil, "", unreadable(err)
			}
			if left -= int64(len(value)); left < 0 {
				return nil, "", errTooLarge
			}
			r.PostForm.Add(part.FormName(), string(value))
		case part.FormName() == "file" && name == "":
			name = part.FileName()
			if file, err = readFile(part, int(most+1), int(r.ContentLength)); err != nil {
				return nil, "", unreadable(err)
			}
		}
	}
}

// readFile reads at most most bytes. form is the size of the whole form; at most 0 if unknown.
func readFile(part *multipart.Part, most, form int) (file []byte, err error) {
	room := min(most, firstRoom)
	if form > 0 {
		room = min(room, form)
	}
	file = make([]byte, 0, room)
	for {
		n, err := part.Read(file[len(file):cap(file)])
		switch file = file[:len(file)+n]; {
		case errors.Is(err, io.EOF) || len(file) == most:
			return file, nil
		case err != nil:
			return nil, err
		case len(file) == cap(file):
			more := make([]byte, len(file), min(most, max(form, 2*cap(file))))
			copy(more, file)
			file = more
		}
	}
}

// HeavyTurn waits, as long as the request lives, for one of few turns that need much memory. The request holds no turn
// at the database while it waits.
func (v *Visit) HeavyTurn(owner int64) (leave func(), err error) {
	v.Leave()
	for leave == nil {
		if leave, err = v.site.heavy.Enter(v.Ctx(), owner); v.Ctx().Err() != nil {
			break
		}
	}
	if err == nil {
		err = v.TakeTurn()
	}
	if err != nil && leave != nil {
		leave()
	}
	return leave, err
}
