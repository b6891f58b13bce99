// Package numberfile is the form with a file of phone numbers: of a campaign, or of contacts.
package numberfile

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"intumwa/accounts"
	"intumwa/campaigns/sheets"
	"intumwa/dashboard/web"
	"intumwa/texts"
)

const uploadTime = 2 * time.Minute // for receiving and checking a large file

// Upload is the limits of the form.
var Upload = web.Upload{Size: sheets.MaxFile + web.MaxForm, Time: uploadTime}

// Read reads the form of a company whose files have at most most bytes. Call leave, also after an error, when the file
// is no longer needed.
func Read(v *web.Visit, company *accounts.Company, most int) (file []byte, name string, leave func(), err error) {
	var turns []func()
	leave = func() {
		for _, end := range turns {
			end()
		}
	}
	turn, err := v.UploadTurn(company.ID)
	if err != nil {
		return nil, "", leave, err
	}
	turns = append(turns, turn)
	if turn, err = enterLarge(v, company, most); err != nil {
		return nil, "", leave, err
	}
	turns = append(turns, turn)
	if file, name, err = v.Upload(sheets.MaxFile); err == nil {
		err = v.TakeTurn()
	}
	return file, name, leave, err
}

// Unpack waits for a turn to read a workbook. Other files need none.
func Unpack(v *web.Visit, company *accounts.Company, file []byte) (leave func(), err error) {
	if !sheets.IsBook(file) {
		return func() {}, nil
	}
	return v.HeavyTurn(company.ID)
}

// small is the size of a form without a large file.
const small = 1<<20 + web.MaxForm

// enterLarge waits for a slot for a large form and extends its time limit. Anyone can create companies, so the form of
// a company with a low limit is never large.
func enterLarge(v *web.Visit, company *accounts.Company, most int) (leave func(), err error) {
	r := v.C.Request
	if r.ContentLength >= 0 && r.ContentLength <= small || most+web.MaxForm <= small {
		r.Body = http.MaxBytesReader(v.C.Writer, r.Body, small)
		return func() {}, nil
	}
	if leave, err = v.LargeTurn(company.ID); err != nil {
		return nil, err
	}
	control, end := http.NewResponseController(v.C.Writer), time.Now().Add(uploadTime)
	if err := errors.Join(control.SetReadDeadline(end), control.SetWriteDeadline(end)); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// About returns what the form says about its file, and checks the file's size.
func About(f *web.Form, file []byte, most int) sheets.Reading {
	about := sheets.Reading{Encoding: f.Value("encoding"), Numbers: strings.TrimSpace(f.Value("numbers"))}
	if !web.Among(Encodings(f.Visit.Lang), about.Encoding) {
		f.Refuse("encoding", "campaign.encoding.wrong")
	}
	if len(file) == 0 {
		f.Refuse("file", "campaign.file.none")
	} else if len(file) > most {
		f.Refuse("file", "campaign.file.large", most>>20)
	}
	return about
}

// Encodings are the choices of the form; the first is to guess.
func Encodings(lang *texts.Language) (list []web.Option) {
	for _, e := range sheets.Encodings {
		text := e.Name
		if e.Key != "" {
			text = lang.T(e.Key)
		}
		list = append(list, web.Option{Value: e.Name, Text: text})
	}
	return list
}
