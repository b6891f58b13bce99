package accounts

import (
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxDocument is the largest size of a document, in bytes.
const MaxDocument = 5 << 20

// Document describes a file about a company, or about a sender at a carrier.
type Document struct {
	Name    string // of the uploaded file; empty: none was uploaded
	Type    string // media type
	Size    int    // bytes
	At      *time.Time
	Deleted bool // by an administrator
}

// Kilobytes returns the document's size, rounded up.
func (d Document) Kilobytes() int { return (d.Size + 999) / 1000 }

// documentTypes are the accepted media types, with the extensions of their files.
var documentTypes = map[string][]string{"application/pdf": {".pdf"}, "image/png": {".png"},
	"image/jpeg": {".jpg", ".jpeg"}}

// DocumentType returns a document's media type; empty unless its name and content are of one accepted type.
func DocumentType(name string, file []byte) string {
	found := http.DetectContentType(file)
	if !slices.Contains(documentTypes[found], strings.ToLower(path.Ext(name))) {
		return ""
	}
	return found
}

// NewDocument describes an uploaded file; [ErrInvalid] if it is too large or of another type.
func NewDocument(name string, file []byte) (Document, error) {
	d := Document{Name: shortName(name), Type: DocumentType(name, file), Size: len(file)}
	if d.Type == "" || d.Size > MaxDocument {
		return Document{}, Errorf(ErrInvalid, "the document is not a PDF, PNG or JPEG file of at most 5 MiB")
	}
	return d, nil
}

// shortName returns the printable part of a file's name; of a long one, the end.
func shortName(name string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unprintable(r) {
			return -1
		}
		return r
	}, name))
	return string(runes[max(0, len(runes)-100):])
}
