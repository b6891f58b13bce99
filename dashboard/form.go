package dashboard

import (
	"errors"
	"net/http"
	"net/mail"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// form is a submitted form and its errors.
type form struct {
	values url.Values
	wrong  map[string]string // field → text
	Notice string            // about the whole form
	v      *visit
}

// newForm returns an empty form.
func (v *visit) newForm() *form { return &form{values: url.Values{}, wrong: map[string]string{}, v: v} }

// readForm reads the body of a request with a form: before the request takes a turn, because the client may send it
// slowly. Without a session it is short. When it cannot be read, readForm writes the response and returns false.
func (v *visit) readForm() bool {
	if v.c.Request.Method != http.MethodPost || v.c.Request.PostForm != nil {
		return true
	}
	if v.session == nil {
		v.c.Request.Body = http.MaxBytesReader(v.c.Writer, v.c.Request.Body, maxOpenForm)
	}
	if err := v.c.Request.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			v.renderError(http.StatusRequestEntityTooLarge)
		} else {
			v.renderError(http.StatusForbidden)
		}
		return false
	}
	return true
}

// form returns the form of the request, which was read before.
func (v *visit) form() *form {
	f := v.newForm()
	f.values = v.c.Request.PostForm
	return f
}

// Value returns the value of a field.
func (f *form) Value(field string) string { return f.values.Get(field) }

// Wrong returns the error of a field; empty when there is none.
func (f *form) Wrong(field string) string { return f.wrong[field] }

// refuse sets the error of a field; the first error of a field stays.
func (f *form) refuse(field, key string, args ...any) {
	if _, said := f.wrong[field]; !said {
		f.wrong[field] = f.v.lang.T(key, args...)
	}
	if f.Notice == "" {
		f.Notice = f.v.lang.T("error.summary")
	}
}

// notice sets the error of the whole form.
func (f *form) notice(key string, args ...any) { f.Notice = f.v.lang.T(key, args...) }

func (f *form) ok() bool { return f.Notice == "" }

// required returns a field that must not be empty.
func (f *form) required(field string) string {
	value := f.Value(field)
	if strings.TrimSpace(value) == "" {
		f.refuse(field, "error.required")
	}
	return value
}

// email returns a field with an e-mail address.
func (f *form) email(field string) string {
	value := strings.TrimSpace(f.required(field))
	parsed, err := mail.ParseAddress(value)
	if err != nil || parsed.Address != value || len(value) > 254 {
		f.refuse(field, "error.email")
	}
	return value
}

// name returns a field with a displayed name.
func (f *form) name(field string) string {
	value := strings.TrimSpace(f.required(field))
	if !utf8.ValidString(value) || utf8.RuneCountInString(value) > 200 || strings.ContainsFunc(value, unicode.IsControl) {
		f.refuse(field, "error.name")
	}
	return value
}
