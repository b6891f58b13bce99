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

// form is what a person filled in, and what is wrong with it.
type form struct {
	values url.Values
	wrong  map[string]string // field → text
	Notice string            // about the whole
	v      *visit
}

func newForm() *form { return &form{values: url.Values{}, wrong: map[string]string{}} }

// form reads the request's body; nil when it cannot be read and the request was answered.
func (v *visit) form() *form {
	if err := v.c.Request.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			v.oops(http.StatusRequestEntityTooLarge)
		} else {
			v.oops(http.StatusForbidden)
		}
		return nil
	}
	f := newForm()
	f.values, f.v = v.c.Request.PostForm, v
	return f
}

// Value is what a field holds.
func (f *form) Value(field string) string { return f.values.Get(field) }

// Wrong is what is wrong with a field; empty when nothing is.
func (f *form) Wrong(field string) string { return f.wrong[field] }

// refuse says what is wrong with a field; the first word on a field stands.
func (f *form) refuse(field, key string, args ...any) {
	if _, said := f.wrong[field]; !said {
		f.wrong[field] = f.v.lang.T(key, args...)
	}
	if f.Notice == "" {
		f.Notice = f.v.lang.T("error.summary")
	}
}

// notice says what is wrong with the whole.
func (f *form) notice(key string, args ...any) { f.Notice = f.v.lang.T(key, args...) }

func (f *form) ok() bool { return f.Notice == "" }

// required is a field that must hold something.
func (f *form) required(field string) string {
	value := f.Value(field)
	if strings.TrimSpace(value) == "" {
		f.refuse(field, "error.required")
	}
	return value
}

// email is a field with an address.
func (f *form) email(field string) string {
	value := strings.TrimSpace(f.required(field))
	parsed, err := mail.ParseAddress(value)
	if err != nil || parsed.Address != value || len(value) > 254 {
		f.refuse(field, "error.email")
	}
	return value
}

// name is a field with a name that people read.
func (f *form) name(field string) string {
	value := strings.TrimSpace(f.required(field))
	if !utf8.ValidString(value) || utf8.RuneCountInString(value) > 200 || strings.ContainsFunc(value, unicode.IsControl) {
		f.refuse(field, "error.name")
	}
	return value
}
