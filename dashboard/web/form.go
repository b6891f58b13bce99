package web

import (
	"errors"
	"net/http"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"intumwa/sms"
)

// Form is a request's form and its errors. A rendered page shows them, with the status.
type Form struct {
	Values url.Values
	Errors map[string]string // field → text
	Notice string            // about the whole form
	Status int               // of the page; 0: no error
	names  []string          // of a list's parameters that are set
	Visit  *Visit
}

// readForm reads the body of a request with a form. It does so before the request takes a turn, because the client
// may send slowly. Without a session the limit is lower.
func readForm(v *Visit) error {
	if v.C.Request.Method != http.MethodPost || v.C.Request.PostForm != nil {
		return nil
	}
	if v.Session == nil {
		v.C.Request.Body = http.MaxBytesReader(v.C.Writer, v.C.Request.Body, MaxOpenForm)
	}
	return unreadable(v.C.Request.ParseForm())
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

// Form returns the form of the request: the submitted one, or an empty one.
func (v *Visit) Form() *Form {
	if v.filled == nil {
		v.filled = &Form{Values: url.Values{}, Errors: map[string]string{}, Visit: v}
		if v.C.Request.PostForm != nil {
			v.filled.Values = v.C.Request.PostForm
		}
	}
	return v.filled
}

// Value returns the value of a field.
func (f *Form) Value(field string) string { return f.Values.Get(field) }

// Wrong returns the error of a field; empty when there is none.
func (f *Form) Wrong(field string) string { return f.Errors[field] }

// Refuse sets the error of a field unless it already has one.
func (f *Form) Refuse(field, key string, args ...any) {
	if _, set := f.Errors[field]; !set {
		f.Errors[field] = f.Visit.Lang.T(key, args...)
	}
	if f.OK() {
		f.Fail("error.summary")
	}
}

// Fail sets the error of the whole form.
func (f *Form) Fail(key string, args ...any) { f.Deny(http.StatusUnprocessableEntity, key, args...) }

// Deny is notice with a status other than 422.
func (f *Form) Deny(status int, key string, args ...any) {
	f.Notice, f.Status = f.Visit.Lang.T(key, args...), status
}

// OK reports whether the form has no error.
func (f *Form) OK() bool { return f.Notice == "" }

// Required returns a field that must not be empty.
func (f *Form) Required(field string) string {
	value := f.Value(field)
	if strings.TrimSpace(value) == "" {
		f.Refuse(field, "error.required")
	}
	return value
}

// Email returns a field with an e-mail address.
func (f *Form) Email(field string) string {
	value := strings.TrimSpace(f.Required(field))
	parsed, err := mail.ParseAddress(value)
	if err != nil || parsed.Address != value || len(value) > 254 {
		f.Refuse(field, "error.email")
	}
	return value
}

// Name returns a field with a displayed name.
func (f *Form) Name(field string) string {
	value := strings.TrimSpace(f.Required(field))
	if !utf8.ValidString(value) || utf8.RuneCountInString(value) > 200 || strings.ContainsFunc(value, unicode.IsControl) {
		f.Refuse(field, "error.name")
	}
	return value
}

// Number returns a field with a phone number.
func (f *Form) Number(plan *sms.Plan, field string) sms.Number {
	value := f.Required(field)
	number, ok := plan.Parse(value)
	if !ok {
		f.Refuse(field, "error.number")
	}
	return number
}

// IDs returns the values of a field that are ids.
func (f *Form) IDs(field string) (ids []int64) {
	for _, text := range f.Values[field] {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil && id > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Among reports whether a list has an option with that value.
func Among(list []Option, value string) bool {
	for _, o := range list {
		if o.Value == value {
			return true
		}
	}
	return false
}
