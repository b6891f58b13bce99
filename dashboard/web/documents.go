package web

import (
	"net/http"
	"time"

	"intumwa/accounts"
	"intumwa/internal/throttle"
)

const (
	documentTime = 50 * time.Second // for receiving a document: 100 kB a second
	mib          = 1 << 20
)

// ReceiveDocument reads a form with a document and stores that, or sets the form's errors. owner has the turns and,
// unless nil, the number of uploads that papers allows.
func (v *Visit) ReceiveDocument(owner int64, papers *throttle.Throttle,
	store func(name string, file []byte) error) error {
	leave, err := turnOfUpload(v, owner, v.site.documents)
	if err != nil {
		return err
	}
	defer leave()
	// The server's read timeout is for forms.
	if err := http.NewResponseController(v.C.Writer).SetReadDeadline(time.Now().Add(documentTime)); err != nil {
		return err
	}
	file, name, err := v.Upload(accounts.MaxDocument)
	if err == nil {
		err = v.TakeTurn()
	}
	if err != nil {
		return err
	}
	f := v.Form()
	switch {
	case len(file) == 0:
		f.Refuse("file", "facts.file.none")
	case len(file) > accounts.MaxDocument:
		f.Refuse("file", "facts.file.large", accounts.MaxDocument/mib)
	case accounts.DocumentType(name, file) == "":
		f.Refuse("file", "facts.file.wrong")
	}
	if !f.OK() {
		return nil
	}
	if papers != nil && !papers.Allow(v.Ctx(), owner).Allowed {
		return ErrChanges
	}
	leaveHeavy, err := v.HeavyTurn(owner)
	if err != nil {
		return err
	}
	defer leaveHeavy()
	return store(name, file)
}
