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

// form is a request's form and its errors. A rendered page shows them, with the status.
type form struct {
	values url.Values
	wrong  map[string]string // field → text
	Notice string            // about the whole form
	status int               // of the page; 0: no error
	names  []string          // of a list's parameters that are set
	v      *visit
}

// readForm reads the body of a request with a form. It does so before the request takes a turn, because the client
// may send slowly. Without a session the limit is lower.
func (v *visit) readForm() error {
	if v.c.Request.Method != http.MethodPost || v.c.Request.PostForm != nil {
		return nil
	}
	if v.session == nil {
		v.c.Request.Body = http.MaxBytesReader(v.c.Writer, v.c.Request.Body, maxOpenForm)
	}
	return unreadable(v.c.Request.ParseForm())
}

// unreadable returns the failure of a form that could not be read.
func unreadable(err error) error {
	if err == nil {
		return nil
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return errTooLarge
	}
	return errForbidden
}

// form returns the form of the request: the submitted one, or an empty one.
func (v *visit) form() *form {
	if v.filled == nil {
		v.filled = &form{values: url.Values{}, wrong: map[string]string{}, v: v}
		if v.c.Request.PostForm != nil {
			v.filled.values = v.c.Request.PostForm
		}
	}
	return v.filled
}

// Value returns the value of a field.
func (f *form) Value(field string) string { return f.values.Get(field) }

// Wrong returns the error of a field; empty when there is none.
func (f *form) Wrong(field string) string { return f.wrong[field] }

// refuse sets the error of a field unless it already has one.
func (f *form) refuse(field, key string, args ...any) {
	if _, set := f.wrong[field]; !set {
		f.wrong[field] = f.v.lang.T(key, args...)
	}
	if f.ok() {
		f.notice("error.summary")
	}
}

// notice sets the error of the whole form.
func (f *form) notice(key string, args ...any) { f.deny(http.StatusUnprocessableEntity, key, args...) }

// deny is notice with a status other than 422.
func (f *form) deny(status int, key string, args ...any) {
	f.Notice, f.status = f.v.lang.T(key, args...), status
}

// allow denies a form after too many tries: see allowTry.
func (f *form) allow(kind, email string) {
	if f.ok() && !f.v.allowTry(kind, email) {
		f.deny(http.StatusTooManyRequests, "error.tries")
	}
}

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
