package companies

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

// stated are the facts of a company in Bujumbura.
var stated = Facts{NIF: "4000123456", TradeRegister: "RC 12345/21",
	Address: "12, avenue de la Mission, Rohero, Bujumbura", Phone: "+257 22 21 00 00", Contact: "Aline Ndayishimiye"}

// TestFactsAreChecked: each fact has a length and a form; the error names all invalid ones.
func TestFactsAreChecked(t *testing.T) {
	for _, try := range []struct {
		change func(*Facts)
		wrong  string
	}{
		{func(*Facts) {}, ""},
		{func(f *Facts) { f.NIF = " 4000 123-456 " }, ""},
		{func(f *Facts) { f.NIF = "p051234567a" }, ""}, // Kenya
		{func(f *Facts) { f.TradeRegister = "0012345/20" }, ""},
		{func(f *Facts) { f.Phone = "79 12 34 56" }, ""},
		{func(f *Facts) { f.Contact = "Éric" }, ""},
		{func(f *Facts) { *f = Facts{} }, "nif trade_register address phone contact"},
		{func(f *Facts) { f.NIF = "12345" }, "nif"},
		{func(f *Facts) { f.NIF = "4000123456é" }, "nif"},
		{func(f *Facts) { f.NIF = strings.Repeat("4", 21) }, "nif"},
		{func(f *Facts) { f.TradeRegister = "none" }, "trade_register"},
		{func(f *Facts) { f.TradeRegister = "12345 <b>" }, "trade_register"},
		{func(f *Facts) { f.TradeRegister = strings.Repeat("1", 41) }, "trade_register"},
		{func(f *Facts) { f.Address = " \n" }, "address"},
		{func(f *Facts) { f.Address = "Rohero\u202e" }, "address"},
		{func(f *Facts) { f.Address = strings.Repeat("é", 301) }, "address"},
		{func(f *Facts) { f.Phone = "22 21 00" }, "phone"},
		{func(f *Facts) { f.Phone = "ask Aline 22210000" }, "phone"},
		{func(f *Facts) { f.Phone = "1234567890123456" }, "phone"},
		{func(f *Facts) { f.Contact = "A\x00B" }, "contact"},
		{func(f *Facts) { f.Contact = "\xff" }, "contact"},
		{func(f *Facts) { f.Contact = strings.Repeat("a", accounts.MaxName+1) }, "contact"},
	} {
		f := stated
		try.change(&f)
		got, err := f.clean()
		wrong, _ := errors.AsType[*FactsError](err)
		if (err == nil) != (try.wrong == "") || err != nil && strings.Join(wrong.Names, " ") != try.wrong || err != nil &&
			!errors.Is(err, accounts.ErrInvalid) {
			t.Errorf("%+v: %v, want %q", f, err, try.wrong)
		}
		if err == nil && (strings.ContainsAny(got.NIF, " -") || got.NIF != strings.ToUpper(got.NIF)) {
			t.Errorf("stored as %q", got.NIF)
		}
	}
}

// TestDocumentType: a document's name and its content are of one accepted type.
func TestDocumentType(t *testing.T) {
	const pdf, png, jpeg = "%PDF-1.7\n", "\x89PNG\r\n\x1a\n", "\xff\xd8\xff\xe0\x00\x10JFIF"
	for _, try := range []struct{ name, content, want string }{
		{"rc.pdf", pdf, "application/pdf"}, {"RC.PDF", pdf, "application/pdf"}, {"a.b.png", png, "image/png"},
		{"scan.jpg", jpeg, "image/jpeg"}, {"scan.JPEG", jpeg, "image/jpeg"},
		{"rc.pdf", png, ""}, {"rc.png", pdf, ""}, {"rc", pdf, ""}, {"rc.pdf.html", pdf, ""},
		{"rc.pdf", "<html><script>alert(1)</script>", ""}, {"rc.svg", "<svg/>", ""},
		{"rc.exe", "MZ\x90\x00", ""}, {"rc.pdf", "", ""}, {"rc.gif", "GIF89a", ""}, {"rc.docx", "PK\x03\x04", ""},
		{"rc.pdf", "PK\x03\x04", ""},
	} {
		if got := accounts.DocumentType(try.name, []byte(try.content)); got != try.want {
			t.Errorf("%s with %q: %q, want %q", try.name, try.content, got, try.want)
		}
	}
}

// TestFacts: a company changes its facts and document until it is approved with them; afterwards it may only add
// missing ones.
func TestFacts(t *testing.T) {
	a := newWorld(t)
	owner := a.User(t, "a@example.com").Email
	c := a.Company(t, owner)
	id, other := sms.CompanyID(c.ID), sms.CompanyID(a.Company(t, a.User(t, "b@example.com").Email).ID)
	none, err := a.companies.FactsOf(t.Context(), id)
	if err != nil || len(none.Missing()) != 6 || none.Version() != "" {
		t.Fatalf("before: %+v, %v", none, err)
	}
	_, _, err = a.companies.SetFacts(t.Context(), 99, stated)
	testenv.Wants(t, "an unknown company", err, accounts.ErrNotFound, "no company with id 99")
	_, _, err = a.companies.SetFacts(t.Context(), id, Facts{})
	testenv.Wants(t, "nothing", err, accounts.ErrInvalid, "nif, trade_register, address, phone, contact")

	before, first, err := a.companies.SetFacts(t.Context(), id, stated)
	if err != nil || before.NIF != "" || first.NIF != stated.NIF ||
		!slices.Equal(first.Missing(), []string{FactDocument}) || first.Version() == "" {
		t.Fatalf("%+v, %+v, %v", before, first, err)
	}
	pdf := append([]byte("%PDF-1.7\n"), make([]byte, 1000)...)
	_, _, err = a.companies.SetDocument(t.Context(), id, "rc.png", pdf)
	testenv.Wants(t, "another type", err, accounts.ErrInvalid, "PDF, PNG or JPEG")
	_, _, err = a.companies.SetDocument(t.Context(), id, "rc.pdf", append(pdf, make([]byte, accounts.MaxDocument)...))
	testenv.Wants(t, "too large", err, accounts.ErrInvalid, "at most 5 MiB")
	if _, err := a.companies.DeleteDocument(t.Context(), id); !errors.Is(err, accounts.ErrNotFound) {
		t.Error("deleting none:", err)
	}
	for _, name := range []string{"old.pdf", "new\u202e.pdf"} {
		if _, _, err := a.companies.SetDocument(t.Context(), id, name, pdf); err != nil {
			t.Fatal(err)
		}
		pdf = append(pdf, 'x')
	}
	read := func(company sms.CompanyID) (d accounts.Document, content []byte, err error) {
		f, err := a.companies.FactsOf(t.Context(), company)
		for part := []byte("?"); err == nil && len(part) > 0; content = append(content, part...) {
			part, err = a.companies.DocumentPart(t.Context(), company, f.Document, len(content), 100)
		}
		return f.Document, content, err
	}
	d, content, err := read(id)
	if err != nil || d.Name != "new.pdf" || d.Type != "application/pdf" || d.Size != len(pdf)-1 ||
		string(content) != string(pdf[:len(pdf)-1]) {
		t.Errorf("%+v, %d bytes, %v", d, len(content), err)
	}
	if _, _, err := read(other); !errors.Is(err, accounts.ErrNotFound) {
		t.Error("another company's document:", err)
	}
	if p, err := a.companies.ApplicantByID(t.Context(), c.ID); err != nil || len(p.Facts.Missing()) != 0 ||
		p.Facts.Version() == first.Version() || p.Facts.Document.Name != "new.pdf" {
		t.Errorf("%+v, %v", p, err)
	}
	if all, err := a.companies.Awaiting(t.Context(), 0, 10); err != nil || len(all) != 2 ||
		all[0].Facts.NIF != stated.NIF || len(all[1].Facts.Missing()) != 6 {
		t.Errorf("%+v, %v", all, err)
	}

	err = pgx.BeginTxFunc(t.Context(), a.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		if _, err := a.companies.In(tx).CompanyByID(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.companies.SetFacts(t.Context(), id, stated); err != nil {
			t.Fatal(err)
		}
		_, err := a.companies.In(tx).LockFacts(t.Context(), id)
		return err
	})
	if !postgres.GaveWay(err) {
		t.Error("an approval that began before a change of the facts does not give way:", err)
	}

	for _, company := range []sms.CompanyID{id, other} {
		if _, err := a.companies.SetCompany(t.Context(), int64(company), CompanyChange{Approved: new(true)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := a.companies.SetFacts(t.Context(), id, stated); !errors.Is(err, ErrFactsClosed) {
		t.Error("facts after the approval:", err)
	}
	deleted, err := a.companies.DeleteDocument(t.Context(), id)
	if err != nil || !deleted.Document.Deleted || len(deleted.Missing()) != 0 {
		t.Errorf("%+v, %v", deleted, err)
	}
	if _, _, err := a.companies.SetDocument(t.Context(), id, "rc.pdf", pdf); !errors.Is(err, ErrFactsClosed) {
		t.Error("a document after the approval:", err)
	}
	if _, _, err := read(id); !errors.Is(err, accounts.ErrNotFound) {
		t.Error("the deleted document:", err)
	}
	if _, _, err := a.companies.SetFacts(t.Context(), other, stated); err != nil { // approved by a command
		t.Error("the first facts after the approval:", err)
	}
}
