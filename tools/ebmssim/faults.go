package ebmssim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Faults are what the eBMS may do, or what its specification leaves open. They change while it runs. The zero value is
// the specification's reading with the most support.
type Faults struct {
	TokenLife     time.Duration `json:"-"`              // JSON "token_life"; 60 s when zero
	ExpiredStatus int           `json:"expired_status"` // 403 when zero
	DuplicateText string        `json:"duplicate_text"` // the live text when empty
	// status of a duplicate; 400 when zero
	DuplicateStatus  int      `json:"duplicate_status"`
	UnknownTINs      []string `json:"unknown_tins"` // of taxpayers that the OBR does not know
	StrictLengths    bool     `json:"strict_lengths"`
	Amounts          string   `json:"amounts"` // string or number; empty: both are taken
	NoFA             bool     `json:"no_fa"`
	NoConfirm        bool     `json:"no_confirm"`
	ResultArray      bool     `json:"result_array"`
	NumbersAsNumbers bool     `json:"numbers_as_numbers"`
	NoSignature      bool     `json:"no_signature"`
	CheckSums        bool     `json:"check_sums"`
	OTTAfterVAT      bool     `json:"ott_after_vat"`

	ClockBehind   time.Duration `json:"-"`    // JSON "clock_behind"
	Slow          time.Duration `json:"-"`    // JSON "slow"
	Rate          int           `json:"rate"` // requests a minute; 0: no limit
	HTML          bool          `json:"html"`
	Junk          bool          `json:"junk"`
	BadGateway    bool          `json:"bad_gateway"`
	Fail          bool          `json:"fail"`
	Cut           bool          `json:"cut"`
	CutAfterStore int           `json:"cut_after_store"` // so many of the next invoices
	RefuseLogin   bool          `json:"refuse_login"`
	Refuse        string        `json:"refuse"` // every invoice is refused with these words
}

// faultsDo describes each fault, in the order of Faults.
var faultsDo = []struct{ name, does string }{
	{"token_life", "How long a token works; 60s if empty."},
	{"expired_status", "The status for a token that has expired: 401 or 403 (the default)."},
	{"duplicate_text", "The words for a number that it already has."},
	{"duplicate_status", "Their status; 400 if 0."},
	{"unknown_tins", "NIFs that it does not know."},
	{"strict_lengths", "Of two lengths in the specification, the shorter holds: NIF 15, sector 20, reason 100, " +
		"trade register 20."},
	{"amounts", "`string` or `number`: it takes amounts only so."},
	{"no_fa", "It takes no invoice of type FA."},
	{"no_confirm", "It has no addInvoice_confirm."},
	{"result_array", "The result of a success is in an array too."},
	{"numbers_as_numbers", "The OBR's number of an invoice is a JSON number."},
	{"no_signature", "Replies have no signature."},
	{"check_sums", "It refuses lines whose sums are wrong by more than a franc."},
	{"ott_after_vat", "With `check_sums`: item_ott_tax is added after the VAT."},
	{"clock_behind", "Its clock is so much behind."},
	{"slow", "So long a wait before each reply."},
	{"rate", "More requests than this in a minute get 429."},
	{"html", "A page with status 200 instead of JSON."},
	{"junk", "A warning of PHP before the JSON."},
	{"bad_gateway", "502 with a page."},
	{"fail", "500 with JSON."},
	{"cut", "Connections are closed without a reply."},
	{"cut_after_store", "It stores so many of the next invoices and closes the connection without a reply."},
	{"refuse_login", "No login is accepted."},
	{"refuse", "Every invoice is refused with these words."},
}

// FaultsTable returns Faults as a Markdown table.
func FaultsTable() string {
	var table strings.Builder
	table.WriteString("| fault | what the eBMS does |\n|---|---|\n")
	for _, f := range faultsDo {
		table.WriteString("| `" + f.name + "` | " + f.does + " |\n")
	}
	return table.String()
}

type timesJSON struct {
	TokenLife   string `json:"token_life"`
	ClockBehind string `json:"clock_behind"`
	Slow        string `json:"slow"`
}

type plainFaults Faults

// MarshalJSON writes every fault by its JSON name, durations as text.
func (f Faults) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainFaults
		timesJSON
	}{plainFaults(f), timesJSON{f.TokenLife.String(), f.ClockBehind.String(), f.Slow.String()}})
}

// UnmarshalJSON changes the given faults and keeps the others. Unknown names are an error.
func (f *Faults) UnmarshalJSON(data []byte) error {
	body := struct {
		*plainFaults
		timesJSON
	}{plainFaults: (*plainFaults)(f)}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return fmt.Errorf("reading faults: %w", err)
	}
	for _, d := range []struct {
		name, text string
		field      *time.Duration
	}{{"token_life", body.timesJSON.TokenLife, &f.TokenLife}, {"clock_behind", body.timesJSON.ClockBehind, &f.ClockBehind},
		{"slow", body.timesJSON.Slow, &f.Slow}} {
		if d.text == "" {
			continue
		}
		value, err := time.ParseDuration(d.text)
		if err != nil {
			return fmt.Errorf("reading faults: %s: %w", d.name, err)
		}
		*d.field = value
	}
	return nil
}

func (f *Faults) life() time.Duration {
	if f.TokenLife == 0 {
		return time.Minute
	}
	return f.TokenLife
}

func (f *Faults) expired() int {
	if f.ExpiredStatus == 0 {
		return http.StatusForbidden
	}
	return f.ExpiredStatus
}

func (f *Faults) duplicate() (status int, text string) {
	status, text = f.DuplicateStatus, strings.ReplaceAll(f.DuplicateText, "%", "%%")
	if status == 0 {
		status = http.StatusBadRequest
	}
	if text == "" {
		text = "Une facture avec le même numéro existe déjà."
	}
	return status, text
}
