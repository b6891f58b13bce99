package ebms

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrDuplicate means that the eBMS has an invoice with this number. [Session.Find] tells whether it is this one.
var ErrDuplicate = errors.New("the eBMS has an invoice with this number")

// Refused means that the eBMS does not take the invoice, and that repeating it would not help.
type Refused struct{ Words string } // of the OBR

func (e *Refused) Error() string { return e.Words }

// Fault means that a request failed after the login, and that it may succeed later.
type Fault struct{ Words string }

func (e *Fault) Error() string { return e.Words }

// Away means that the eBMS cannot be used now: no connection, no login.
type Away struct{ Cause error }

func (e *Away) Error() string { return e.Cause.Error() }

func (e *Away) Unwrap() error { return e.Cause }

// reply is a reply with its JSON. result is decoded by need: a failure has an array where a success has an object.
type reply struct {
	status    int
	success   bool
	words     string
	result    json.RawMessage
	signature string
	raw       []byte
}

// mostStarts bounds how many braces readReply tries.
const mostStarts = 50

// readReply finds the JSON in a reply: warnings of PHP or HTML may be around it. A server before the eBMS may refuse a
// request with a message alone. With an error the reply has only its status.
func readReply(status int, raw []byte) (reply, error) {
	rest := raw
	for range mostStarts {
		start := bytes.IndexByte(rest, '{')
		if start < 0 {
			break
		}
		rest = rest[start:]
		var is struct {
			Success   *anyBool        `json:"success"`
			Words     anyText         `json:"msg"`
			Message   anyText         `json:"message"`
			Result    json.RawMessage `json:"result"`
			Signature anyText         `json:"electronic_signature"`
		}
		if json.NewDecoder(bytes.NewReader(rest)).Decode(&is) == nil && (is.Success != nil || is.Words != "" ||
			is.Message != "" && status >= http.StatusBadRequest) {
			if is.Words == "" {
				is.Words = is.Message
			}
			return reply{status, is.Success != nil && bool(*is.Success) && status/100 == 2, excerpt(string(is.Words)), is.Result,
				string(is.Signature), raw}, nil
		}
		rest = rest[1:]
	}
	said := excerpt(tag.ReplaceAllString(string(raw), " "))
	if said == "" {
		said = "nothing"
	}
	return reply{status: status}, fmt.Errorf("status %d and no JSON of the eBMS, but: %s", status, said)
}

var tag = regexp.MustCompile(`(?s)<(script|style)\b.*?</(script|style)>|<[^>]*>`)

// excerptLength bounds words of the OBR that are stored and shown.
const excerptLength = 500

// excerpt returns the beginning of a text on one line.
func excerpt(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if utf8.RuneCountInString(text) > excerptLength {
		text = string([]rune(text)[:excerptLength-1]) + "…"
	}
	return text
}

// lazily decodes the result, which may be an array with the object in it.
func (r reply) lazily(into any) error {
	var list []json.RawMessage
	if json.Unmarshal(r.result, &list) == nil {
		if len(list) == 0 {
			return errors.New("the result is empty")
		}
		return json.Unmarshal(list[0], into)
	}
	return json.Unmarshal(r.result, into)
}

// refusal is the reply as an error.
func (r reply) refusal() error {
	if r.words == "" {
		return fmt.Errorf("status %d without a reason", r.status)
	}
	return fmt.Errorf("%s (status %d)", r.words, r.status)
}

// has reports whether the words have all of these, whatever their case and accents.
func (r reply) has(words ...string) bool {
	text := plain.Replace(strings.ToLower(r.words))
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

var plain = strings.NewReplacer("é", "e", "è", "e", "ê", "e", "à", "a", "ç", "c", "ù", "u", "û", "u", "î", "i",
	"ô", "o",
	"e\u0301", "e", "’", "'")

// sorted sorts the refusal of an invoice. The wording is not certain, so few words decide.
func (r reply) sorted() error {
	switch {
	case r.has("facture", "existe") && !r.has("existe pas"), r.has("facture", "deja"), r.status == http.StatusConflict:
		return fmt.Errorf("%w: %s", ErrDuplicate, r.words)
	case r.status >= 500, r.status == http.StatusTooManyRequests, r.status == http.StatusRequestTimeout,
		r.has("date", "superieur"): // our clock is ahead of theirs
		return &Fault{r.refusal().Error()}
	case r.status == http.StatusNotFound, r.status == http.StatusMethodNotAllowed:
		return &Away{fmt.Errorf("addInvoice_confirm does not exist there: %w", r.refusal())}
	}
	return &Refused{r.refusal().Error()}
}

// unknown sorts the failure of a look-up.
func (r reply) unknown(of string) error {
	if r.status < 500 && r.has("inconnu") || r.status < 500 && r.has(of, "pas connu") {
		return ErrUnknown
	}
	return &Fault{r.refusal().Error()}
}

// anyText is a text, or a number as text.
type anyText string

// UnmarshalJSON implements json.Unmarshaler. What is neither is empty.
func (t *anyText) UnmarshalJSON(data []byte) error {
	var text string
	var number json.Number
	switch {
	case json.Unmarshal(data, &text) == nil:
		*t = anyText(text)
	case json.Unmarshal(data, &number) == nil:
		*t = anyText(number)
	}
	return nil
}

// anyBool is a boolean, or 1 or "true".
type anyBool bool

// UnmarshalJSON implements json.Unmarshaler.
func (b *anyBool) UnmarshalJSON(data []byte) error {
	text := strings.ToLower(strings.Trim(string(data), `"`))
	*b = anyBool(text == "true" || text == "1")
	return nil
}
