package ebms

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/ebmssim"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const system, nif, password = "ws400012345600001", "4000123456", "secret"

// simulate serves an eBMS.
func simulate(t *testing.T, f ebmssim.Faults) (*ebmssim.Sim, *httptest.Server) {
	t.Helper()
	sim, err := ebmssim.New(ebmssim.Options{Username: system, Password: password, Faults: f})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	return sim, server
}

func client(t *testing.T, url string) *Client {
	t.Helper()
	c := NewClient(Access{URL: url + "/", Username: system, Password: password})
	t.Cleanup(c.End)
	return c
}

// sale is the n-th invoice.
func sale(n int) *Invoice {
	issued := time.Date(2026, 11, 3, 14, 30, 0, 999, Place).Add(time.Duration(n) * time.Minute)
	number := fmt.Sprintf("F%06d", n)
	return &Invoice{Identifier: Identifier(nif, system, issued, number), Number: number, Kind: Sale, Issued: issued,
		Payment: Bank,
		Seller: Seller{Type: "2", Name: "Intumwa S.A.", NIF: nif, Trade: "12345/20", Phone: "+25722222222", Commune: "Mukaza",
			Quarter: "Rohero", VAT: "1", Consumption: "0", Flat: "0", FiscalCentre: "DMC", Sector: "Télécommunications",
			LegalForm: "S.A."},
		Customer: Customer{Name: "Épicerie de l'Étoile <& fils>", NIF: "4000999999"},
		Lines: []Line{{Designation: "Crédits SMS", Quantity: "1000", Price: "12.50", Consumption: "0", Flat: "0", OTT: "0",
			TSCE: "5000", Net: "17500", VAT: "2250", Gross: "19750", Total: "19750"}}}
}

// credit is the credit note of an invoice.
func credit(n int, of *Invoice) *Invoice {
	v := *of
	v.Number, v.Kind, v.RefersTo, v.Reason = fmt.Sprintf("A%06d", n), CreditNote, of.Number, "Wrong price"
	v.Identifier = Identifier(nif, system, v.Issued, v.Number)
	return &v
}

// TestIdentifier: the time is that of Burundi, and cut to a second.
func TestIdentifier(t *testing.T) {
	at := time.Date(2026, 12, 31, 22, 5, 9, 999999999, time.UTC)
	if got := Identifier(nif, system, at, "F/7"); got != nif+"/"+system+"/20270101000509/F/7" {
		t.Error(got)
	}
}

// TestSwitches: whatever the specification leaves open, an invoice is received once, or refused with the words of the
// OBR, or put off.
func TestSwitches(t *testing.T) {
	const received, duplicate, refused, fault, away = "received", "duplicate", "refused", "fault", "away"
	for name, test := range map[string]struct {
		faults ebmssim.Faults
		change func(*Invoice)
		want   string
		words  string
	}{
		"as specified":         {want: received},
		"result in an array":   {faults: ebmssim.Faults{ResultArray: true}, want: received},
		"numbers as numbers":   {faults: ebmssim.Faults{NumbersAsNumbers: true}, want: received},
		"junk before the JSON": {faults: ebmssim.Faults{Junk: true}, want: received},
		"no signature":         {faults: ebmssim.Faults{NoSignature: true}, want: received},
		"amounts as texts":     {faults: ebmssim.Faults{Amounts: "string"}, want: received},
		"sums are checked":     {faults: ebmssim.Faults{CheckSums: true}, want: received},
		"amounts as numbers": {faults: ebmssim.Faults{Amounts: "number"},
			want: refused, words: "Pour la ligne numéro: 1"},
		"stored, then cut": {faults: ebmssim.Faults{CutAfterStore: 1}, want: fault, words: "addInvoice_confirm"},
		"cut":              {faults: ebmssim.Faults{Cut: true}, want: away, words: "login"},
		"a page": {faults: ebmssim.Faults{HTML: true},
			want: away, words: "no JSON of the eBMS, but: Site en maintenance"},
		"502 with a page": {faults: ebmssim.Faults{BadGateway: true}, want: away, words: "status 502"},
		"429":             {faults: ebmssim.Faults{Rate: 3}, want: fault, words: "429"},
		"500":             {faults: ebmssim.Faults{Fail: true}, want: fault, words: "Quelque chose a mal tourné"},
		"its clock is behind": {faults: ebmssim.Faults{ClockBehind: time.Since(sale(0).Issued) + time.Hour},
			want: fault, words: "supérieur à la date"},
		"no addInvoice_confirm": {faults: ebmssim.Faults{NoConfirm: true}, want: away, words: "404"},
		"the login is refused":  {faults: ebmssim.Faults{RefuseLogin: true}, want: away, words: "Nom d'utilisateur"},
		"an unknown NIF": {faults: ebmssim.Faults{UnknownTINs: []string{"4000999999"}},
			want: refused, words: "pas connu par l'OBR"},
		"other words": {faults: ebmssim.Faults{Refuse: "Non, \x01 100 %"},
			want: refused, words: "Non, 100 % (status 400)"},
		"the shorter lengths": {faults: ebmssim.Faults{StrictLengths: true},
			change: func(v *Invoice) { v.Seller.Sector = strings.Repeat("a", 21) }, want: refused, words: "tp_activity_sector"},
		"the longer lengths": {change: func(v *Invoice) { v.Seller.Sector = strings.Repeat("a", 250) }, want: received},
		"a duplicate, live":  {change: func(v *Invoice) { *v = *sale(0) }, want: duplicate},
		"a duplicate, 409": {faults: ebmssim.Faults{DuplicateStatus: 409, DuplicateText: "Impossible."},
			change: func(v *Invoice) { *v = *sale(0) }, want: duplicate},
		"a duplicate, as in the specification": {faults: ebmssim.Faults{DuplicateText: "Cette FACTURE a déjà été enregistrée"},
			change: func(v *Invoice) { *v = *sale(0) }, want: duplicate},
		"a credit note": {change: func(v *Invoice) { *v = *credit(1, sale(0)) }, want: received},
		"of an unknown invoice": {change: func(v *Invoice) { *v = *credit(1, sale(9)) },
			want: refused, words: "inconnue"},
		"credit notes are not taken": {faults: ebmssim.Faults{NoFA: true}, change: func(v *Invoice) { *v = *credit(1, sale(0)) },
			want: refused, words: "FN, RC, RHF"},
		"more than the invoice": {change: func(v *Invoice) {
			*v = *credit(1, sale(0))
			v.Lines = append(v.Lines, v.Lines[0])
		}, want: refused, words: "dépasse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim, server := simulate(t, ebmssim.Faults{})
			c := client(t, server.URL)
			report := func(v *Invoice) (Receipt, error) {
				if err := v.Check(); err != nil {
					t.Fatal(err)
				}
				s, err := c.Login(t.Context())
				if err != nil {
					return Receipt{}, err
				}
				return s.Add(t.Context(), v)
			}
			if _, err := report(sale(0)); err != nil {
				t.Fatal(err)
			}
			sim.Faults(func(f *ebmssim.Faults) { *f = test.faults })
			v := sale(1)
			if test.change != nil {
				test.change(v)
			}
			proof, err := report(v)
			if got := sorted(err); got != test.want || err != nil && !strings.Contains(err.Error(), test.words) {
				t.Fatalf("%s: %v; want %s, %s", got, err, test.want, test.words)
			}
			if test.want == received && (proof.Registered != "2" || !strings.Contains(string(proof.Raw), v.Number) ||
				(len(proof.Signature) == 344) == test.faults.NoSignature) {
				t.Errorf("%+v", proof)
			}
			sim.Faults(func(f *ebmssim.Faults) { *f = ebmssim.Faults{} })
			s, err := c.Login(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Find(t.Context(), v)
			if has := test.want == received || test.want == duplicate || test.faults.CutAfterStore > 0; has != (err == nil) ||
				!has && !errors.Is(err, ErrUnknown) {
				t.Errorf("getInvoice: %v", err)
			}
		})
	}
}

// sorted names the kind of an error.
func sorted(err error) string {
	for kind, is := range map[string]bool{"received": err == nil, "duplicate": errors.Is(err, ErrDuplicate),
		"refused": as[*Refused](err), "fault": as[*Fault](err), "away": as[*Away](err)} {
		if is {
			return kind
		}
	}
	return "other"
}

func as[T error](err error) bool { _, is := errors.AsType[T](err); return is }

// TestTokens: a token that is not accepted any more is replaced once, with 401 and 403, whatever it says of itself.
func TestTokens(t *testing.T) {
	for _, status := range []int{401, 403} {
		sim, server := simulate(t, ebmssim.Faults{ExpiredStatus: status})
		s, err := client(t, server.URL).Login(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sim.Faults(func(f *ebmssim.Faults) { f.TokenLife = time.Nanosecond })
		if _, err := s.Add(t.Context(), sale(1)); sorted(err) != "fault" || !strings.Contains(err.Error(), "just given") {
			t.Errorf("%d: %v", status, err)
		}
		if n := sim.Calls(); n["login/"] != 3 || n["addInvoice_confirm/"] != 2 {
			t.Errorf("%d: %v", status, n)
		}
		old := s.token
		sim.Faults(func(f *ebmssim.Faults) { f.TokenLife = time.Minute })
		s.token = "expired"
		if _, err := s.Add(t.Context(), sale(1)); err != nil || s.token == old {
			t.Errorf("%d: %v", status, err)
		}
		sim.Faults(func(f *ebmssim.Faults) { f.ExpiredStatus = 400 })
		s.token, s.since = "expired", s.since.Add(-freshFor) // an old one is not tried
		if _, err := s.Add(t.Context(), sale(2)); err != nil {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// TestMessage: a message alone is a refusal, but no success.
func TestMessage(t *testing.T) {
	const said = `{"message":"Forbidden"}`
	if r, err := readReply(403, []byte(said)); err != nil || r.status != 403 || r.success || r.words != "Forbidden" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := readReply(200, []byte(said)); err == nil || r.status != 200 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSlow: a call ends with its context.
func TestSlow(t *testing.T) {
	_, server := simulate(t, ebmssim.Faults{Slow: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client(t, server.URL).Login(ctx); sorted(err) != "away" || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestTLS: a certificate of an authority that is not trusted, or for another name, is refused before anything is sent.
func TestTLS(t *testing.T) {
	sim, err := ebmssim.New(ebmssim.Options{Username: system, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(sim)
	defer server.Close()
	if _, err := client(t, server.URL).Login(t.Context()); sorted(err) != "away" ||
		!strings.Contains(err.Error(), "unknown authority") {
		t.Error(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	for address, want := range map[string]string{server.URL: "",
		strings.Replace(server.URL, "127.0.0.1", "127.0.0.2", 1): "127.0.0.2"} {
		c := NewClient(Access{URL: address, Username: system, Password: password, CA: trusted})
		defer c.End()
		if _, err := c.Login(t.Context()); want == "" && err != nil || want != "" && (sorted(err) != "away" ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if n := sim.Calls()["login/"]; n != 1 {
		t.Errorf("%d logins", n)
	}
}

// TestCheckTIN: the OBR knows a NIF, or does not, or cannot be asked.
func TestCheckTIN(t *testing.T) {
	sim, server := simulate(t, ebmssim.Faults{UnknownTINs: []string{"1"}})
	s, err := client(t, server.URL).Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if name, err := s.Taxpayer(t.Context(), "4000999999"); err != nil || name != "CONTRIBUABLE 4000999999" {
		t.Errorf("%q, %v", name, err)
	}
	if _, err := s.Taxpayer(t.Context(), "1"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	sim.Faults(func(f *ebmssim.Faults) { f.Fail = true })
	if _, err := s.Taxpayer(t.Context(), "1"); sorted(err) != "fault" {
		t.Error(err)
	}
}

// TestCheck: what the eBMS would refuse is found before, with the name of the field.
func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Invoice){
		"tp_phone_number is required and empty":                    func(v *Invoice) { v.Seller.Phone = " " },
		"tp_TIN has 31 characters, and the eBMS takes 30":          func(v *Invoice) { v.Seller.NIF = strings.Repeat("é", 31) },
		"tp_fiscal_center must be one of DGC, DMC, DPMC":           func(v *Invoice) { v.Seller.FiscalCentre = "X" },
		"vat_customer_payer must be one of 0, 1":                   func(v *Invoice) { v.Customer.VAT = "yes" },
		"invoice_ref is required and empty":                        func(v *Invoice) { v.Kind = CreditNote },
		"invoice_items is required and empty":                      func(v *Invoice) { v.Lines = nil },
		"line 1: vat must be a number that is not negative":        func(v *Invoice) { v.Lines[0].VAT = "-1" },
		"line 1: item_price must be a number that is not negative": func(v *Invoice) { v.Lines[0].Price = "1e3" },
		"line 1: item_designation is required and empty":           func(v *Invoice) { v.Lines[0].Designation = "" },
		"customer_name is not valid UTF-8":                         func(v *Invoice) { v.Customer.Name = "\xff" },
	} {
		v := sale(1)
		change(v)
		if err := v.Check(); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
